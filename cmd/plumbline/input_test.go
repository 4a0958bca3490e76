package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

func TestLinesInSlices(t *testing.T) {
	long := strings.Repeat("x", maxLineBytes+100)
	in := newLineReader(iotest.OneByteReader(strings.NewReader("one\r\n\n  two \n" + long + "\nfour")))
	var got []line
	var err error
	for err == nil {
		var slice []line
		if slice, err = in.slice(1, 2, 1<<30); len(slice) > 2 {
			t.Fatalf("a slice has %d lines, want 2 at most", len(slice))
		}
		got = append(got, slice...)
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if len(got) != 4 || got[0].number != 1 || string(got[1].text) != "two" || got[1].number != 3 || got[3].number != 5 || string(got[3].text) != "four" {
		t.Errorf("lines are %v", got)
	}
	if len(got[2].text) != maxLineBytes {
		t.Errorf("%d bytes of a long line are sent, want %d", len(got[2].text), maxLineBytes)
	}
}

func TestSliceBeginsAtTheGivenLine(t *testing.T) {
	got, err := newLineReader(strings.NewReader("1\n2\n3\n4\n")).slice(3, 10, 1<<20)
	if !errors.Is(err, io.EOF) || len(got) != 2 || got[0].number != 3 || string(got[0].text) != "3" {
		t.Errorf("slice is %v, error %v", got, err)
	}
}

func TestSliceIsBoundedInBytes(t *testing.T) {
	in := newLineReader(strings.NewReader("12345\n12345\n12345\n"))
	if got, err := in.slice(1, 10, 8); err != nil || len(got) != 2 {
		t.Errorf("slice is %v, error %v", got, err)
	}
}

func TestInputIsUnpacked(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte("text")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"plain": []byte("text"), "packed": packed.Bytes()} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		in, err := openInput(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(in); err != nil || string(got) != "text" {
			t.Errorf("%s: the input is %q, error %v", name, got, err)
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := openInput(t.Context(), "-", bytes.NewReader([]byte{0x1f, 0x8b, 0})); err == nil {
		t.Error("a broken gzip header was accepted")
	}
}
