#!/bin/sh
# Plays one shard of a campaign: the entry of the container, for an indexed Job or anything else that counts from 0.
#
#   JOB_COMPLETION_INDEX  which shard, from 0; Kubernetes sets it
#   FIREDRILL_SHARDS      of how many
#   FIREDRILL_SEEDS       all seeds of the campaign        [0..1000000]
#   FIREDRILL_BUDGET      how long the shard may play      [20min]
#   FIREDRILL_RESULTS     folder to leave everything in    [/results]
#
# Leaves report.json, log.txt and the scenarios found in a folder of its own, named by the index. Standard output is
# the report and nothing else, so that the log of a pod is as good as its volume. Ends as `firedrill fuzz` ends.
set -u

: "${JOB_COMPLETION_INDEX:?says which shard this is, from 0; an indexed Job sets it}"
: "${FIREDRILL_SHARDS:?says how many shards there are; set it to the completions of the Job}"

folder="${FIREDRILL_RESULTS:-/results}/$JOB_COMPLETION_INDEX"
mkdir -p "$folder/found" || exit 70

# A report that was cut off must not pass for one: it gets its name when it is whole.
firedrill fuzz --shard auto --seeds "${FIREDRILL_SEEDS:-0..1000000}" --budget "${FIREDRILL_BUDGET:-20min}" --keep "$folder/found" --format json \
  > "$folder/report.part" 2> "$folder/log.txt"
status=$?

if [ -s "$folder/report.part" ]; then
  mv "$folder/report.part" "$folder/report.json"
  cat "$folder/report.json"
else
  cat "$folder/log.txt" >&2
fi
exit "$status"
