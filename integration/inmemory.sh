#!/bin/sh
# Runs a command whose temporary files are in memory: sh integration/inmemory.sh COMMAND…
#
# Tests run brokers and databases that wait for the disk at every write. In memory the tests of a broker take
# half the CPU and less than two thirds of the time. The command keeps its directory if TMPDIR is set, if
# less than 4 GiB are free in /dev/shm or 6 GiB of memory, or if programs cannot run there. The linked test
# binaries, some 60 MB each, are there, too: with GOTMPDIR they could be on the disk, but so would be the
# directories of t.TempDir.
set -u
dir=/dev/shm/plumbline-test-$(id -u)-$(pwd | cksum | cut -d' ' -f1) # the same in each run: Go keeps results by TMPDIR
room() {
	free=$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 {print $4}') &&
		test "${free:-0}" -ge 4194304 &&
		awk '/^MemAvailable:/ {found = $2 >= 6291456} END {exit !found}' /proc/meminfo 2>/dev/null
}
runs() {
	rm -rf "$dir" && mkdir -m 700 "$dir" && printf '#!/bin/sh\n' >"$dir/runs" && chmod +x "$dir/runs" && "$dir/runs" && return
	rm -rf "$dir"
	return 1
}
if test -z "${TMPDIR:-}" && room && runs 2>/dev/null; then
	trap 'rm -rf "$dir"' EXIT
	trap 'exit 130' INT TERM
	TMPDIR=$dir
	export TMPDIR
fi
"$@"
