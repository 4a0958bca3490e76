#!/bin/sh
# Signs the checksums of a release: writes SHA256SUMS.sig next to SHA256SUMS, for docs/OPERATIONS.md#verify-a-release.
#
#     PLUMBLINE_RELEASE_KEY=~/.ssh/plumbline-release make release-sign
#
# The key is an Ed25519 key of ssh-keygen, of the person who releases; of a key in an agent or a hardware token, name the .pub
# file. It is never in the repository.
set -eu
dir=${1:?the directory with SHA256SUMS}
: "${PLUMBLINE_RELEASE_KEY:?names no key: a file that ssh-keygen -t ed25519 has made}"
(cd "$dir" && sha256sum --quiet --check SHA256SUMS) # what is signed is what is there
rm -f "$dir/SHA256SUMS.sig" # ssh-keygen would ask
ssh-keygen -q -Y sign -f "$PLUMBLINE_RELEASE_KEY" -n plumbline-release "$dir/SHA256SUMS"
