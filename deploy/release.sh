#!/bin/sh
# Makes the files of a release in bin/release: for each architecture of Linux an archive of the programs, their manual
# pages, systemd units and list of components (SBOM, CycloneDX 1.6, of what Go recorded in each program), and SHA256SUMS.
#
#     make release VERSION=v1.4.0 [ARCHES="amd64 arm64"]
#
# It leaves out what differs between two builds of one commit: folder, time, user and module cache, and the settings of Go on this machine. Go
# records the commit's id in the programs. make release-check compares two builds, make release-sign signs SHA256SUMS. GNU tar
# is needed.
set -eu
cd "$(dirname "$0")/.."
: "${VERSION:=$(git describe --always --dirty)}" "${ARCHES:=amd64 arm64}" "${GO:=go}"
out=$PWD/bin/release
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$out" && mkdir -p "$out"
time=$(git log -1 --format=%ct)
export GOFLAGS= GOEXPERIMENT= GOFIPS140=off GOWORK=off

CGO_ENABLED=0 $GO -C integration/sbom build -o "$work/cyclonedx" github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod
stamp="-X github.com/plumbline/plumbline/pipeline/service.version=$VERSION"
CGO_ENABLED=0 $GO run -ldflags "$stamp" ./cmd/plumbline man "$work/man1"
for arch in $ARCHES; do
  name=plumbline-$VERSION-linux-$arch
  files=$work/$name
  mkdir -p "$files/bin" "$files/sbom" "$files/systemd"
  CGO_ENABLED=0 GOOS=linux GOARCH=$arch GOAMD64=v1 GOARM64=v8.0 $GO build -trimpath -buildvcs=true \
    -ldflags "-s -w -buildid= $stamp" -o "$files/bin/" ./cmd/...
  for program in "$files"/bin/*; do
    # All are static but plumbline-engine, which loads the library of the embedded engine with the loader of glibc.
    if test "$(basename "$program")" != plumbline-engine && grep -q ld-linux "$program"; then
      echo "release.sh: $program is not static" >&2
      exit 1
    fi
    if $GO version -m "$program" | grep -q vcs.modified=true; then
      echo "release.sh: $program is not of a commit: commit or remove what git status shows" >&2
      exit 1
    fi
    list=$files/sbom/$(basename "$program").cdx.json
    GOOS=linux GOARCH=$arch "$work/cyclonedx" bin -json -std -noserial -notimestamp -version "$VERSION" -output "$list" "$program" 2>/dev/null
    # Hashes of the tool itself, which has the path of the module cache in it.
    sed -i '/^    "tools": \[/,/^    \]/{/"hashes": \[/,/\],/d}' "$list"
    # Every module that Go recorded is on the list, with its version; the list has the program and Go itself besides.
    $GO version -m "$program" | awk '$1 == "dep" {print $2 "@" $3}' | sort >"$work/recorded"
    sed -n 's|.*"purl": "pkg:golang/\([^?"]*\)?goarch='"$arch"'.*|\1|p' "$list" | sort -u >"$work/listed"
    if comm -23 "$work/recorded" "$work/listed" | grep . || test "$(wc -l <"$work/listed")" -ne $(($(wc -l <"$work/recorded") + 2)); then
      echo "release.sh: $list does not list the modules of $program" >&2
      exit 1
    fi
  done
  cp -R "$work/man1" LICENSE README.md CHANGELOG.md "$files"
  cp deploy/systemd/* "$files/systemd"
  chmod -R u=rwX,go=rX "$files"
  tar -C "$work" --sort=name --format=ustar --mtime="@$time" --owner=0 --group=0 --numeric-owner -cf - "$name" | gzip -n9 >"$out/$name.tar.gz"
  echo "$out/$name.tar.gz"
done
cd "$out" && sha256sum ./*.tar.gz | sed 's| \./| |' >SHA256SUMS
