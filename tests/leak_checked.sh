#!/usr/bin/env bash
# Runs a test program that is built with AddressSanitizer; again when LeakSanitizer itself, looking for leaks at the end,
# did not survive (github.com/google/sanitizers/issues/1353: now and then, with every program). What the program found
# wrong counts at once: a failed check, a report of a sanitizer, a leak.
#   leak_checked.sh PROGRAM [ARGUMENT...]
set -u
output=$(mktemp)
trap 'rm -f "$output"' EXIT
for attempt in 1 2 3; do
  "$@" 2>&1 | tee "$output"
  status=${PIPESTATUS[0]}
  [[ $status -eq 0 ]] && exit 0
  grep -q 'LeakSanitizer has encountered a fatal error' "$output" || break
  grep -Eq 'ERROR: (Address|Leak)Sanitizer|runtime error:|test cases?:.*failed' "$output" && break
  echo "attempt $attempt: no search for leaks took place"
done
exit "$status"
