#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# takes 80 s
# Random tables through dm-crypt and through cryptfuse: the same judgement and the same bytes.
exec "$BUILD/tests/kernel/differential" --differences "$SRC/tests/kernel/differences.txt" --seed "$SEED" --tables "$TABLES" \
	${ENGINE:+--engine "$ENGINE"}
