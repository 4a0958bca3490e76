package tlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/plumbline/plumbline/aivs/anchor"
)

// root returns the Merkle tree hash of RFC 6962 section 2.1, computed by its definition.
func root(leaves [][]byte) tlog.Hash {
	if len(leaves) == 1 {
		return tlog.RecordHash(leaves[0])
	}
	k := 1
	for 2*k < len(leaves) {
		k *= 2
	}
	return tlog.NodeHash(root(leaves[:k]), root(leaves[k:]))
}

func tileOf(t *testing.T, l *Log, path string) []byte {
	t.Helper()
	data, err := l.Tile(path)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return data
}

// Tiles have the contents that c2sp.org/tlog-tiles specifies, while the log grows and after it
// was opened again.
func TestTiles(t *testing.T) {
	dir, leaves := t.TempDir(), leavesOf(t, 0, 600)
	l := open(t, dir)
	appendTo(t, l, leaves[:255])
	early := tileOf(t, l, "0/000.p/255")
	appendTo(t, l, leaves[255:513])
	closeLog(t, l)
	l = open(t, dir)
	defer func() { closeLog(t, l) }()
	appendTo(t, l, leaves[513:])

	var level0, level1, entries []byte
	for i, leaf := range leaves {
		hash := tlog.RecordHash(leaf)
		level0 = append(level0, hash[:]...)
		entries = append(binary.BigEndian.AppendUint16(entries, uint16(len(leaf))), leaf...)
		if i == 255 || i == 511 || i == 599 {
			path := fmt.Sprintf("%03d", i/256)
			if i == 599 {
				path += ".p/88"
			} else {
				subtree := root(leaves[i-255 : i+1])
				level1 = append(level1, subtree[:]...)
			}
			if !bytes.Equal(tileOf(t, l, "0/"+path), level0) || !bytes.Equal(tileOf(t, l, "entries/"+path), entries) {
				t.Errorf("tile %s or its entries differ", path)
			}
			level0, entries = nil, nil
		}
	}
	if !bytes.Equal(tileOf(t, l, "1/000.p/2"), level1) {
		t.Error("the tile of level 1 differs")
	}
	if !bytes.Equal(tileOf(t, l, "0/000.p/255"), early) || !bytes.Equal(tileOf(t, l, "0/000")[:255*32], early) {
		t.Error("a partial tile has changed")
	}
	if head := l.Head(); head.Root != root(leaves) {
		t.Errorf("root %s", head.Root)
	}
}

func TestInvalidTilePaths(t *testing.T) {
	l := open(t, t.TempDir())
	defer closeLog(t, l)
	appendTo(t, l, leavesOf(t, 0, 300))
	for _, path := range []string{
		"", "0", "0/", "/000", "0/0", "0/00", "0/0000", "00/000", "0/000.p/", "0/000.p/0", "0/000.p/256", "0/000.p/01", "0/000.p/-1", "0/-01", "-1/000", "+0/000",
		"0/x000/000", "0/x001", "0/001", "0/001.p/45", "0/002.p/1", "1/000", "1/000.p/2", "2/000.p/1", "8/000.p/1", "63/000.p/1", "64/000", "entries", "entries/001",
		"entries/001.p/45", "entries/x999/x999/x999/x999/x999/x999/999", "0/x999/x999/x999/x999/x999/x999/999", "0/x009/x223/x372/x036/x854/x775/807", "data/000", "0/000/", "0/000?", "../checkpoint",
	} {
		if data, err := l.Tile(path); !errors.Is(err, ErrNoTile) {
			t.Errorf("%q: %d bytes, %v", path, len(data), err)
		}
	}
	if tile, err := parseTile("3/x001/x234/067.p/8"); err != nil || tile != (tlog.Tile{H: 8, L: 3, N: 1234067, W: 8}) {
		t.Errorf("%+v, %v", tile, err)
	}
}

// served returns a log as a client reads it.
func served(t *testing.T, l *Log) *Remote {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /log/checkpoint", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(l.Checkpoint()) })
	mux.HandleFunc("GET /log/tile/{path...}", func(w http.ResponseWriter, r *http.Request) {
		data, err := l.Tile(r.PathValue("path"))
		if err != nil || strings.HasSuffix(r.PathValue("path"), ".p/44") && l.Head().Size >= 512 { // removed, since the full tile exists
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(data)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return &Remote{Client: server.Client(), Prefix: server.URL + "/log/", Keys: []note.Verifier{verifierOf(t, keyOf(1))}}
}

// A client that keeps a checkpoint can check by tiles alone that the log is append-only.
func TestClientsCheckThatALogOnlyGrows(t *testing.T) {
	l := open(t, t.TempDir())
	defer closeLog(t, l)
	remote := served(t, l)
	kept := []*anchor.Checkpoint{}
	for _, size := range []int{0, 1, 2, 255, 256, 257, 300, 512, 700} {
		appendTo(t, l, leavesOf(t, int(l.Head().Size), size))
		newer, signed, err := remote.Checkpoint(t.Context())
		if err != nil || newer.Size != int64(size) || !bytes.Equal(signed, l.Checkpoint()) {
			t.Fatalf("%d: %+v, %v", size, newer, err)
		}
		for _, older := range append(kept, newer) {
			if err := remote.GoesOnFrom(t.Context(), older, newer); err != nil {
				t.Errorf("from %d to %d: %v", older.Size, newer.Size, err)
			}
		}
		kept = append(kept, newer)
	}
	newest := kept[len(kept)-1]
	if err := remote.GoesOnFrom(t.Context(), newest, kept[3]); err == nil || !strings.Contains(err.Error(), "rolled back") {
		t.Errorf("rolled back: %v", err)
	}
	other := open(t, t.TempDir())
	defer closeLog(t, other)
	appendTo(t, other, append(leavesOf(t, 1, 2), leavesOf(t, 0, 1)...)) // another order
	appendTo(t, other, leavesOf(t, 2, 800))
	rewritten := served(t, other)
	now, _, err := rewritten.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, older := range kept[1:] {
		if err := rewritten.GoesOnFrom(t.Context(), older, now); err == nil || !strings.Contains(err.Error(), "rewritten") {
			t.Errorf("rewritten, from %d: %v", older.Size, err)
		}
	}
	if err := remote.GoesOnFrom(t.Context(), kept[4], now); err == nil {
		t.Error("the tiles of another log are accepted for a checkpoint")
	}
	remote.Keys = []note.Verifier{verifierOf(t, keyOf(2))}
	if _, _, err := remote.Checkpoint(t.Context()); err == nil {
		t.Error("a checkpoint with an unknown key is accepted")
	}
}
