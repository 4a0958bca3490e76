// Package aivstest packs and unpacks archives for the tests of bundles.
//
// It owns the gzip layer only. It does not build bundles (package aivs does), and it imports nothing
// of aivs, so that every package below aivs can use it. Only tests import it.
package aivstest

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"
)

// Gzip wraps content in gzip without compressing it, which is fast.
func Gzip(t testing.TB, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.NoCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Gunzip returns the uncompressed content.
func Gunzip(t testing.TB, data []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
