#!/bin/sh
# Makes the files of a release in bin/release: for each architecture of Linux an archive of the programs, their manual
# pages, systemd units and list of components (SBOM, CycloneDX 1.6, of what Go recorded in each program), and SHA256SUMS.
#
#     make release VERSION=v1.4.0 [ARCHES="amd64 arm64"]
#
# It leaves out what differs between two builds of one commit: folder, time and user. Go records the commit's id in the
# programs. make release-check compares two builds. GNU tar is needed.
set -eu
cd "$(dirname "$0")/.."
: "${VERSION:=$(git describe --always --dirty)}" "${ARCHES:=amd64 arm64}" "${GO:=go}"
out=$PWD/bin/release
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$out" && mkdir -p "$out"
time=$(git log -1 --format=%ct)

CGO_ENABLED=0 $GO -C integration/sbom build -o "$work/cyclonedx" github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod
CGO_ENABLED=0 $GO run ./cmd/plumbline man "$work/man1"
for arch in $ARCHES; do
  name=plumbline-$VERSION-linux-$arch
  files=$work/$name
  mkdir -p "$files/bin" "$files/sbom" "$files/systemd"
  CGO_ENABLED=0 GOOS=linux GOARCH=$arch GOAMD64=v1 GOARM64=v8.0 $GO build -trimpath \
    -ldflags "-s -w -buildid= -X github.com/plumbline/plumbline/pipeline/service.version=$VERSION" -o "$files/bin/" ./cmd/...
  for program in "$files"/bin/*; do
    "$work/cyclonedx" bin -json -std -noserial -notimestamp -version "$VERSION" \
      -output "$files/sbom/$(basename "$program").cdx.json" "$program" 2>/dev/null
  done
  cp -R "$work/man1" LICENSE README.md CHANGELOG.md "$files"
  cp deploy/systemd/* "$files/systemd"
  chmod -R u=rwX,go=rX "$files"
  tar -C "$work" --sort=name --format=ustar --mtime="@$time" --owner=0 --group=0 --numeric-owner -cf - "$name" | gzip -n9 >"$out/$name.tar.gz"
  echo "$out/$name.tar.gz"
done
cd "$out" && sha256sum ./*.tar.gz | sed 's| \./| |' >SHA256SUMS
