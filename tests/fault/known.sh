#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# known.sh - faults that were once handled wrong, in under a minute: for the mutants.
set -e
here=$(dirname "$0")
walk() { "$here/run" --first 1 --spread 1 "$@"; }
walk --call mmap64 --call close_range --call realloc --call malloc --call recv open
walk --call malloc --call calloc --spread 5 info-json status-json
walk --call getxattr --call fork close
walk --call dup2 mount
walk --call getxattr umount
