/*
 * memutils.h
 *		Nothing that postgres.h of the shim does not have.
 */
