package tlog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/pipeline/problem"
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

// How long an answer may be cached: a head changes soon, a tile never.
const (
	cacheBriefly = "public, max-age=1"
	cacheAMinute = "public, max-age=60"
	cacheForGood = "public, max-age=31536000, immutable"
)

const plainText = "text/plain; charset=utf-8"

// maxCosigned is larger than any checkpoint with its cosignatures.
const maxCosigned = 64 << 10

// Server serves a log as tiles (c2sp.org/tlog-tiles, with the prefix /v1/log): its keys, the one
// in use first, its head, its hashes and its entries. Anyone can check that the log is
// append-only. It also accepts checkpoints that witnesses have cosigned.
type Server struct {
	Log       *Log
	Witnesses []*anchor.Witness // witnesses whose cosignatures are accepted
	Errors    *slog.Logger
}

// Register registers the routes by their patterns (http.ServeMux).
func (s *Server) Register(handle func(pattern string, handler http.Handler)) {
	for pattern, handler := range map[string]http.HandlerFunc{
		"GET /v1/log/key": func(w http.ResponseWriter, _ *http.Request) {
			respond(w, cacheAMinute, plainText, []byte(s.Log.Keys()))
		},
		"GET /v1/log/checkpoint":     func(w http.ResponseWriter, _ *http.Request) { respond(w, cacheBriefly, plainText, s.Log.Checkpoint()) },
		"GET /v1/log/cosigned":       s.cosigned,
		"GET /v1/log/tile/{path...}": s.tile,
		"POST /v1/log/cosigned":      s.cosign,
	} {
		handle(pattern, handler)
	}
}

func (s *Server) cosigned(w http.ResponseWriter, _ *http.Request) {
	if signed := s.Log.Cosigned(); signed != nil {
		respond(w, cacheBriefly, plainText, signed)
		return
	}
	refuse(w, http.StatusNotFound, "not_found", "no witness has cosigned a checkpoint of this log yet")
}

func (s *Server) tile(w http.ResponseWriter, r *http.Request) {
	data, err := s.Log.Tile(r.PathValue("path"))
	switch {
	case errors.Is(err, ErrNoTile):
		refuse(w, http.StatusNotFound, "not_found",
			"the log has no such tile: use <level>/<index> or entries/<index>, with .p/<width> after a partial one (c2sp.org/tlog-tiles)")
	case err != nil:
		s.Errors.Error("a tile of the transparency log cannot be read", "error", err)
		refuse(w, http.StatusInternalServerError, "internal", "the log cannot be read; see the service log")
	default:
		respond(w, cacheForGood, "application/octet-stream", data)
	}
}

// cosign accepts a checkpoint with cosignatures: the text that GET returns, with the witnesses'
// lines after the log's. Any client may send it, not only a witness.
func (s *Server) cosign(w http.ResponseWriter, r *http.Request) {
	signed, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCosigned))
	if err != nil {
		refuse(w, http.StatusBadRequest, "unreadable", "the body cannot be read, or has more than %d bytes", maxCosigned)
		return
	}
	err = s.Log.Cosign(signed, s.Witnesses, time.Now())
	switch {
	case err == nil:
		respond(w, "no-store", plainText, s.Log.Cosigned())
	case errors.Is(err, ErrNotCheckpoint):
		refuse(w, http.StatusBadRequest, "not_a_checkpoint", "%v", err)
	case errors.Is(err, ErrNoWitness):
		refuse(w, http.StatusForbidden, "no_witness", "%v; the operator names witnesses with log_witness", err)
	case errors.Is(err, ErrNotKept):
		s.Errors.Error("a client has a signed checkpoint that this transparency log does not extend: the log was changed or replaced", "error", err)
		refuse(w, http.StatusConflict, "inconsistent", "%v", err)
	default:
		s.Errors.Error("a cosigned checkpoint cannot be stored", "error", err)
		refuse(w, http.StatusInternalServerError, "internal", "the checkpoint cannot be stored; see the service log")
	}
}

func respond(w http.ResponseWriter, caching, kind string, text []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", caching)
	_, _ = w.Write(text) // an error means that the client has left
}

func refuse(w http.ResponseWriter, code int, word, format string, args ...any) {
	problem.New(code, word, format, args...).With("Cache-Control", "no-store").Write(w)
}
