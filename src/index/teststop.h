/*
 * teststop.h
 *		Stopping the server between two steps, for test/index/crash and fingerprint_crash.
 *
 * This exists only if the library is compiled with -DBFINDEX_TEST_STOPS.  The setting
 * bloomfilter.test_stop then names the place where the whole server stops at once, after
 * the session has passed it bloomfilter.test_stop_passes times.
 */
#ifndef BF_INDEX_TESTSTOP_H
#define BF_INDEX_TESTSTOP_H

#ifdef BFINDEX_TEST_STOPS
extern void bfindex_define_test_stop(void);
extern void bfindex_test_stop(const char *place);
#else
#define bfindex_define_test_stop()	((void) 0)
#define bfindex_test_stop(place)	((void) 0)
#endif

#endif							/* BF_INDEX_TESTSTOP_H */
