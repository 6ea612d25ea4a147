/*
 * base64.c
 *		Encoding and strict decoding of base64.
 *
 * PostgreSQL's own routines are not used: they count in int, which a text of 700 MB
 * overflows, ignore white space, and accept several texts for the same bytes.
 * Here every byte string has exactly one text.
 */
#include "base64.h"

static const char alphabet[] =
"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int
digit_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

size_t
bf_base64_encoded_size(size_t n)
{
	return (n + 2) / 3 * 4;
}

void
bf_base64_encode(bf_host host, char *string, const uint8_t *bytes, size_t n)
{
	size_t		i = 0;

	for (; i + 2 < n; i += 3)
	{
		uint32_t	triple = (uint32_t) bytes[i] << 16 | (uint32_t) bytes[i + 1] << 8 | bytes[i + 2];

		*string++ = alphabet[triple >> 18];
		*string++ = alphabet[triple >> 12 & 63];
		*string++ = alphabet[triple >> 6 & 63];
		*string++ = alphabet[triple & 63];
		if (i % (BF_POLL_EVERY * 3) == 0)
			bf_poll(host);
	}
	if (i < n)
	{
		uint32_t	triple = (uint32_t) bytes[i] << 16 |
		(i + 1 < n ? (uint32_t) bytes[i + 1] << 8 : 0);

		*string++ = alphabet[triple >> 18];
		*string++ = alphabet[triple >> 12 & 63];
		*string++ = i + 1 < n ? alphabet[triple >> 6 & 63] : '=';
		*string++ = '=';
	}
}

/* The size of the bytes that a text decodes to; false if no base64 has this length. */
bool
bf_base64_decoded_size(const char *string, size_t length, size_t *n)
{
	if (length % 4 != 0)
		return false;
	*n = length / 4 * 3;
	if (length > 0 && string[length - 1] == '=')
		*n -= string[length - 2] == '=' ? 2 : 1;
	return true;
}

/*
 * Decode into a buffer of bf_base64_decoded_size bytes.  False if the text is
 * not base64 as the encoder writes it; *bad then is the offset of the first
 * wrong character.
 */
bool
bf_base64_decode(bf_host host, uint8_t *bytes, const char *string, size_t length, size_t *bad)
{
	size_t		n;

	if (!bf_base64_decoded_size(string, length, &n))
	{
		*bad = length;
		return false;
	}
	for (size_t i = 0; i < length; i += 4)
	{
		unsigned	digits = i + 4 < length || n % 3 == 0 ? 4 : (unsigned) (n % 3) + 1;
		uint32_t	quad = 0;

		for (unsigned j = 0; j < digits; j++)
		{
			int			value = digit_value(string[i + j]);

			if (value < 0)
			{
				*bad = i + j;
				return false;
			}
			quad |= (uint32_t) value << (18 - 6 * j);
		}
		*bytes++ = (uint8_t) (quad >> 16);
		if (digits > 2)
			*bytes++ = (uint8_t) (quad >> 8);
		if (digits > 3)
			*bytes++ = (uint8_t) quad;

		/* bits beyond the last byte have to be zero */
		if ((digits == 2 && (quad & 0xFFFF) != 0) || (digits == 3 && (quad & 0xFF) != 0))
		{
			*bad = i + digits - 1;
			return false;
		}
		if (i % (BF_POLL_EVERY * 4) == 0)
			bf_poll(host);
	}
	return true;
}
