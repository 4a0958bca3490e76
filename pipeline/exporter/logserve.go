package exporter

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/plumbline/plumbline/aivs/anchor"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/tlog"
)

// serveLog serves the log as tiles (c2sp.org/tlog-tiles, with the prefix /v1/log): its keys, the
// one in use first, its head, its hashes and its entries. Anyone can check that the log is
// append-only. serveLog also accepts checkpoints that witnesses have cosigned.
func (e *exporter) serveLog() {
	text := "text/plain; charset=utf-8"
	for pattern, handle := range map[string]http.HandlerFunc{
		"GET /v1/log/key": func(w http.ResponseWriter, _ *http.Request) { write(w, text, []byte(e.anchors.log.Keys())) },
		"GET /v1/log/checkpoint": func(w http.ResponseWriter, _ *http.Request) {
			writeFor(w, cacheBriefly, text, e.anchors.log.Checkpoint())
		},
		"GET /v1/log/cosigned": func(w http.ResponseWriter, _ *http.Request) {
			if signed := e.anchors.log.Cosigned(); signed != nil {
				writeFor(w, cacheBriefly, text, signed)
				return
			}
			refuse(w, problem.New(http.StatusNotFound, "not_found", "no witness has cosigned a checkpoint of this log yet"))
		},
		"GET /v1/log/tile/{path...}": e.serveTile,
		"POST /v1/log/cosigned":      e.takeCosigned,
	} {
		e.env.Routes.Handle(pattern, handle)
	}
}

func (e *exporter) serveTile(w http.ResponseWriter, r *http.Request) {
	data, err := e.anchors.log.Tile(r.PathValue("path"))
	switch {
	case errors.Is(err, tlog.ErrNoTile):
		refuse(w, problem.New(http.StatusNotFound, "not_found", "the log has no such tile: <level>/<index> or entries/<index>, .p/<width> behind a partial one (c2sp.org/tlog-tiles)"))
	case err != nil:
		e.env.Log.Error("a tile of the transparency log cannot be read", "error", err)
		refuse(w, problem.New(http.StatusInternalServerError, "internal", "the log cannot be read"))
	default:
		writeFor(w, cacheForGood, "application/octet-stream", data)
	}
}

// maxCosigned is larger than any checkpoint with its cosignatures.
const maxCosigned = 64 << 10

// takeCosigned accepts a checkpoint with cosignatures: the text that GET returns, with the
// witnesses' lines after the log's. Any client may send it, not only a witness.
func (e *exporter) takeCosigned(w http.ResponseWriter, r *http.Request) {
	signed, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCosigned))
	if err != nil {
		refuse(w, problem.New(http.StatusBadRequest, "unreadable", "the body cannot be read, or has more than %d bytes", maxCosigned))
		return
	}
	err = e.anchors.log.Cosign(signed, e.anchors.witnesses, time.Now())
	switch {
	case err == nil:
		writeFor(w, "no-store", "text/plain; charset=utf-8", e.anchors.log.Cosigned())
	case errors.Is(err, tlog.ErrNotCheckpoint):
		refuse(w, problem.New(http.StatusBadRequest, "not_a_checkpoint", "%v", err))
	case errors.Is(err, tlog.ErrNoWitness):
		refuse(w, problem.New(http.StatusForbidden, "no_witness", "%v; the operator names witnesses with log_witness", err))
	case errors.Is(err, tlog.ErrNotKept):
		e.env.Log.Error("somebody holds a checkpoint that the transparency log has signed and does not continue", "error", err)
		refuse(w, problem.New(http.StatusConflict, "inconsistent", "%v", err))
	default:
		e.env.Log.Error("a cosigned checkpoint cannot be kept", "error", err)
		refuse(w, problem.New(http.StatusInternalServerError, "internal", "it cannot be kept now"))
	}
}

// witnesses parses the keys of the witnesses.
func (a *Anchors) witnesses() (all []*anchor.Witness, err error) {
	for _, key := range a.LogWitnesses {
		witness, err := anchor.ParseWitness(key)
		if err != nil {
			return nil, err
		}
		all = append(all, witness)
	}
	return all, nil
}

// How long an answer may be cached: a head changes soon, a tile never.
const (
	cacheBriefly = "public, max-age=1"
	cacheForGood = "public, max-age=31536000, immutable"
)

func refuse(w http.ResponseWriter, p *problem.Problem) { p.With("Cache-Control", "no-store").Write(w) }
