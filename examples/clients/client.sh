#!/bin/sh
# A producer and a worker in curl and sh: enqueues its arguments, works until the queue is empty, prints what it did.
# usage: client.sh URL QUEUE [PAYLOAD...]   (payloads are JSON; PIECEWORK_TOKEN is sent when it is set)
set -eu
url=$1 queue=$2
shift 2
worker="sh-$$" n=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

call() { # METHOD PATH BODY [KEY]: prints the answer; sends the same call again while nobody answers it
  for pause in 0 1 2 4 8; do
    sleep "$pause"
    status=$(printf '%s' "$3" | curl -sS -o "$tmp/answer" -w '%{http_code}' -X "$1" "$url$2" --data-binary @- \
      -H 'content-type: application/json' -H "idempotency-key: ${4:-$worker}" \
      ${PIECEWORK_TOKEN:+-H "authorization: Bearer $PIECEWORK_TOKEN"} 2>"$tmp/error") || status=000
    case $status in
      2??) cat "$tmp/answer"; return ;;
      000 | 429 | 503) ;;
      *) cat "$tmp/answer" >&2; return 1 ;;
    esac
  done
  cat "$tmp/error" >&2
  return 1
}

field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }

for payload; do
  n=$((n + 1))
  call POST "/v1/queues/$queue/tasks" "{\"payload\":$payload}" "$worker-$n" >/dev/null
done

while :; do
  n=$((n + 1))
  # The same claimId asks for the same delivery, should the answer be lost.
  delivery=$(call POST "/v1/queues/$queue/claims" "{\"worker\":\"$worker\",\"leaseMs\":30000,\"claimId\":\"$n\"}")
  receipt=$(printf '%s' "$delivery" | field receipt)
  [ -n "$receipt" ] || break
  # Longer work sends this at a third of its lease, and stops when the outcome is not "held".
  held=$(call POST /v1/extend "{\"extends\":[{\"receipt\":\"$receipt\",\"leaseMs\":30000}]}" | field outcome)
  [ "$held" = held ] || continue
  payload=${delivery#*\"payload\":}
  echo "worked on ${payload%\}]\}}"
  settle="{\"settles\":[{\"receipt\":\"$receipt\",\"outcome\":\"ack\"}]}"
  echo "settled: $(call POST /v1/settle "$settle" "$worker-settle-$n" | field outcome)"
done
