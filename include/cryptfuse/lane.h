/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* lane.h - long work that holds one thread, however many ask for it.
 *
 *     thread A   submit a | run {a}            | run {b, c}        | run {d} | returns
 *     thread B       submit b, returns              submit d, returns
 *     thread C          submit c, returns
 *
 * The first that comes does the work; who comes meanwhile leaves its job and goes. All that were left during a run are
 * the next run's jobs together: each run began after every one of its jobs was submitted. That is what an fsync may
 * join and what it may not (HAZARDS 17). Whoever submits must not wait for its own answer in a way that needs this
 * thread. */
#ifndef CRYPTFUSE_LANE_H
#define CRYPTFUSE_LANE_H

#include <pthread.h>
#include <stdbool.h>

/** Embedded in what a user of a lane asks for; memory of the submitter until it is answered. */
struct cf_lane_job {
	struct cf_lane_job *next;
};

struct cf_lane {
	void (*run)(void *ctx, struct cf_lane_job *jobs); /* a list in order of arrival, not empty; answers each */
	void *ctx;
	pthread_mutex_t mutex;
	struct cf_lane_job *first, **end;
	bool busy;
};

void cf_lane_init(struct cf_lane *l, void (*run)(void *ctx, struct cf_lane_job *jobs), void *ctx);

/** cf_lane_fini - nothing may be left in it. */
void cf_lane_fini(struct cf_lane *l);

/** cf_lane_submit - have @job done by this thread or by the one that is in the lane. May return before or long after it
 * was answered: this thread goes on until nothing is left. Any thread; not from inside a run. */
void cf_lane_submit(struct cf_lane *l, struct cf_lane_job *job);

#endif
