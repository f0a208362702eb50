/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* clock.h - the clock that only goes forward, for deadlines: whoever sets the other one must not lengthen or shorten a
 * wait. No state; any thread. */
#ifndef CRYPTFUSE_CLOCK_H
#define CRYPTFUSE_CLOCK_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/** cf_now_ms - milliseconds since some moment. */
int64_t cf_now_ms(void);

/** cf_in_seconds - a deadline for pthread_cond_timedwait on a condition of cf_cond_init. */
struct timespec cf_in_seconds(unsigned s);

/** cf_cond_init - a condition whose timed waits go by this clock. */
void cf_cond_init(pthread_cond_t *cond);

#endif
