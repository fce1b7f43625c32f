#!/bin/bash
# SPDX-License-Identifier: MIT
# Agents that lie (agents/liar.c), each about one thing: the invariant that exists for it says so by its name. Prints `ok NAME` or `not ok NAME`.
# usage: BUILD=build agents/liar_guest_test.sh
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
. harness/guest_test.bash

# Nothing is expected but what always holds.
cat >"$work/lies.yaml" <<END
qpdrill: 1
title: An agent that lies about one thing
bystander: none
qp: { type: RC, timeout: 20, retry_cnt: 7 }
sweep: { lie: [truth, lost_completion, doubled_completion, wrong_wr_id, wrong_status, wrong_order, flipped_byte, stale_payload] }
steps:
  - connect:
  - post:    { at: a, op: READ, size: 64, count: 4, as: "\${lie}" }
  - traffic: { ops: [SEND], messages: 4 }
END
cat >"$work/late.yaml" <<END
qpdrill: 1
title: An agent that is late with what it says of an error
bystander: none
qp: { type: RC, timeout: 20, retry_cnt: 7 }
sweep: { lie: [truth, late_detection] }
steps:
  - connect:
  - allow:   { at: b, event: QP_ACCESS_ERR, recv_wc: WR_FLUSH_ERR, qp: ERR }
  - allow:   { at: a, recv_wc: WR_FLUSH_ERR }
  - post:    { at: a, op: WRITE, size: 64, rkey: wrong, as: "\${lie}" }
  - expect:  { of: "\${lie}", wc: REM_ACCESS_ERR }
END
cat >"$work/hang.yaml" <<END
qpdrill: 1
title: An agent that does not answer
bystander: none
qp: { type: RC, timeout: 20, retry_cnt: 7 }
steps:
  - connect:
  - post:    { at: a, op: READ, size: 64, as: silent_hang, within: 1s }
END

cat >"$work/rounds.yaml" <<END
qpdrill: 1
title: An agent that keeps a queue pair of each recovery
bystander: none
qp: { type: RC, timeout: 20, retry_cnt: 7, max_send_wr: 16, max_recv_wr: 16 }
sweep: { lie: [truth, leaked_each_round] }
steps:
  - connect:
  - post:    { at: a, op: READ, size: 64, as: "\${lie}" }
  - expect:  { of: "\${lie}", wc: SUCCESS }
  - repeat:
      times: 10
      resources: flat
      steps:
        - recover: { path: recreate, check: { ops: [SEND], messages: 2, size: 64 } }
END

# The last one: what it leaves is there for the next case to see.
cat >"$work/leak.yaml" <<END
qpdrill: 1
title: An agent that says it let go of everything
bystander: none
steps:
  - connect:
  - post:    { at: a, op: READ, size: 64, as: leaked_qp }
END

timeout -k 5 2000 "$qpdrill" run "$work/lies.yaml" "$work/late.yaml" "$work/hang.yaml" "$work/rounds.yaml" "$work/leak.yaml" --lab guest --lanes 1 --launch "$build/liar" --out "$work/runs" -q \
	>"$work/out" 2>"$work/err"

# What each case failed by: severity and check of what was found.
found() { # case
	sed -nE 's/^ *"(check|severity|text)": *"(.*)",?$/\1 \2/p' "$work/runs/latest/cases/$1/verdict.json" |
		awk '$1 == "check" { check = $2 } $1 == "severity" { severity = $2 }
			$1 == "text" && severity ~ /^(fail|error|inconclusive)$/ { $1 = ""; print check, severity $0 }'
}
caught() { # name case check words
	found "$2" >"$work/verdicts"
	grep -qE "^$3 fail .*$4" "$work/verdicts"
	verdict "$1" $? "$3 ($4)"
}
truth() { # case: it passes, so that it is the lie that is caught elsewhere
	found "$1" >"$work/verdicts"
	[ -e "$work/runs/latest/cases/$1/verdict.json" ] && [ ! -s "$work/verdicts" ]
	verdict "an agent that tells the truth passes ($1)" $?
}
truth 'lies~lie=truth'
caught 'a lost completion is caught by the ledger' 'lies~lie=lost_completion' ledger ''
caught 'a doubled completion is caught by the ledger' 'lies~lie=doubled_completion' ledger 'second'
caught 'a wrong wr_id is caught by the ledger' 'lies~lie=wrong_wr_id' ledger ''
caught 'a wrong status is caught as unexpected' 'lies~lie=wrong_status' unexpected 'REM_OP_ERR'
caught 'a wrong order is caught by the ledger' 'lies~lie=wrong_order' ledger 'order'
caught 'a flipped byte is caught by the payload' 'lies~lie=flipped_byte' payload ''
caught 'a stale payload is caught by the payload' 'lies~lie=stale_payload' payload 'stale'
caught 'a leaked QP is caught as residue' 'leak' residue 'rdma'
truth 'rounds~lie=truth'
caught 'a queue pair kept each round is caught by the resources' 'rounds~lie=leaked_each_round' resources 'a: qp grew from'
caught 'a late detection is caught by the time' 'late~lie=late_detection' time 'too late'
caught 'a silent hang is caught as such' 'hang' hang ''
[ "${VERBOSE:-}" ] && cat "$work/out" "$work/err"
exit 0
