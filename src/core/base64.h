/*
 * base64.h
 *		The text form of a filter: RFC 4648 base64 on one line.
 */
#ifndef BF_BASE64_H
#define BF_BASE64_H

#include "host.h"

extern size_t bf_base64_encoded_size(size_t n);
extern void bf_base64_encode(bf_host host, char *string, const uint8_t *bytes, size_t n);
extern bool bf_base64_decoded_size(const char *string, size_t length, size_t *n);
extern bool bf_base64_decode(bf_host host, uint8_t *bytes, const char *string, size_t length, size_t *bad);

#endif							/* BF_BASE64_H */
