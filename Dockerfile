# The official PostgreSQL image with the extension's files.  To create the extension, run
# CREATE EXTENSION bloomfilter, for instance in a script in /docker-entrypoint-initdb.d.
#
#   docker build --build-arg PG_MAJOR=18 -t postgres-bloomfilter:18 .
#
# PG_MAJOR can be 15 to 19, if there is an official image postgres:PG_MAJOR (for 19, after its
# release).  Only the three files of the extension are added to the image.

ARG PG_MAJOR=15

FROM postgres:${PG_MAJOR} AS build
RUN apt-get update && \
	apt-get install -y --no-install-recommends gcc make libc6-dev libxxhash-dev "postgresql-server-dev-$PG_MAJOR" && \
	rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY . .
RUN make PG_CONFIG="/usr/lib/postgresql/$PG_MAJOR/bin/pg_config" && \
	make PG_CONFIG="/usr/lib/postgresql/$PG_MAJOR/bin/pg_config" install DESTDIR=/stage

FROM postgres:${PG_MAJOR}
COPY --from=build /stage/ /
