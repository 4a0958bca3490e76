package tlog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// The log as tiles (c2sp.org/tlog-tiles): a tile is up to 256 hashes of one level, an entry
// bundle holds the leaves under a tile of level 0.
const (
	tileHeight = 8
	tileWidth  = 1 << tileHeight
)

// ErrNoTile says that the log does not have this tile, or does not have it yet.
var ErrNoTile = errors.New("the transparency log has no such tile")

// Package sumdb/tlog puts the height into a tile's path, and calls an entry bundle data, of level -1.
const (
	tileRoot     = "tile/8/"
	entriesLevel = -1
)

// Tile returns the resource at a path below the log's "tile/" prefix: <level>/<index> or
// entries/<index>, the index in groups of three digits, with .p/<width> where it is partial. Its
// bytes never change. The error is ErrNoTile if the path is invalid or beyond the log.
func (l *Log) Tile(path string) ([]byte, error) {
	tile, err := parseTile(path)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	level := max(tile.L, 0)
	if full := l.view.head.Size >> (tileHeight * level); tile.N > full/tileWidth || tile.N*tileWidth+int64(tile.W) > full {
		return nil, ErrNoTile
	}
	if tile.L == entriesLevel {
		return l.entries(tile.N, tile.W)
	}
	data, err := tlog.ReadTileData(tile, l.view.reader(nil))
	if err != nil {
		return nil, fmt.Errorf("transparency log: tile %s: %w", path, err)
	}
	return data, nil
}

// entries returns count leaves, each preceded by its length in two bytes.
func (l *Log) entries(n int64, count int) (data []byte, err error) {
	reader := bufio.NewReaderSize(io.NewSectionReader(l.view.leaves, l.starts[n], endless), maxLine)
	for range count {
		leaf, err := readLeaf(reader)
		if err != nil {
			return nil, fmt.Errorf("transparency log: entries of tile %d: %w", n, err)
		}
		data = append(binary.BigEndian.AppendUint16(data, uint16(len(leaf))), leaf...) // a leaf is a session id and some hundred bytes
	}
	return data, nil
}

// maxLevel is the highest level that has tiles: 2^63 leaves are a tile of level 7.
const maxLevel = 7

func parseTile(path string) (tlog.Tile, error) {
	level, index, _ := strings.Cut(path, "/")
	switch level {
	case "entries":
		level = "data"
	case "data":
		return tlog.Tile{}, ErrNoTile
	}
	tile, err := tlog.ParseTilePath(tileRoot + level + "/" + index)
	if err != nil || tile.L > maxLevel {
		return tile, ErrNoTile
	}
	return tile, nil
}

// tilePath returns a tile's path below "tile/".
func tilePath(t tlog.Tile) string {
	path := strings.TrimPrefix(t.Path(), tileRoot)
	if index, isEntries := strings.CutPrefix(path, "data/"); isEntries {
		return "entries/" + index
	}
	return path
}
