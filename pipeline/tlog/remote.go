package tlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/plumbline/plumbline/aivs/anchor"
)

// Remote is a log served as tiles (c2sp.org/tlog-tiles).
type Remote struct {
	Client *http.Client
	Prefix string // base URL of checkpoint and tiles
	Keys   []note.Verifier
}

// fetchTimeout bounds one request to a log.
const fetchTimeout = 30 * time.Second

// maxTile limits how much of an answer is read. It is larger than any tile or checkpoint.
const maxTile = 128 << 10

// errNotServed says that a log does not have the requested resource.
var errNotServed = errors.New("not found")

// Checkpoint returns the log's head, which one of its keys must have signed, and its signed form.
func (r *Remote) Checkpoint(ctx context.Context) (*anchor.Checkpoint, []byte, error) {
	return r.checkpoint(ctx, "checkpoint")
}

// Cosigned returns the newest checkpoint that witnesses have cosigned, where the log publishes it
// as our logs do; for other logs it returns the head.
func (r *Remote) Cosigned(ctx context.Context) (*anchor.Checkpoint, []byte, error) {
	c, signed, err := r.checkpoint(ctx, "cosigned")
	if errors.Is(err, errNotServed) {
		return r.Checkpoint(ctx)
	}
	return c, signed, err
}

func (r *Remote) checkpoint(ctx context.Context, path string) (*anchor.Checkpoint, []byte, error) {
	signed, err := r.get(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	c, err := anchor.OpenCheckpointBy(signed, r.Keys)
	return c, signed, err
}

// GoesOnFrom returns nil if the log at newer holds everything that it held at older, unchanged
// and in order. It computes that from the log's tiles, and checks each tile against newer.
func (r *Remote) GoesOnFrom(ctx context.Context, older, newer *anchor.Checkpoint) (err error) {
	var proof tlog.TreeProof
	if older.Size > 0 && older.Size < newer.Size {
		reader := tlog.TileHashReader(tlog.Tree{N: newer.Size, Hash: newer.Root}, &remoteTiles{r, ctx})
		if proof, err = tlog.ProveTree(newer.Size, older.Size, reader); err != nil {
			return fmt.Errorf("the log's tiles: %w", err)
		}
	}
	return anchor.CheckConsistency(proof, older, newer)
}

func (r *Remote) get(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	url := strings.TrimSuffix(r.Prefix, "/") + "/" + path
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("request to a log: %w", err)
	}
	answer, err := r.Client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("request to a log: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxTile))
	switch {
	case err != nil:
		return nil, fmt.Errorf("request to a log: %s: %w", url, err)
	case answer.StatusCode == http.StatusNotFound:
		return nil, fmt.Errorf("request to a log: %s: %w", url, errNotServed)
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("request to a log: %s: it answered %s", url, answer.Status)
	}
	return data, nil
}

// remoteTiles reads tiles of a remote log for one comparison.
type remoteTiles struct {
	*Remote
	ctx context.Context // tlog's interface has none
}

// Height implements tlog.TileReader.
func (t *remoteTiles) Height() int { return tileHeight }

// SaveTiles implements tlog.TileReader. It keeps nothing.
func (t *remoteTiles) SaveTiles([]tlog.Tile, [][]byte) {}

// ReadTiles implements tlog.TileReader. A log may have removed a partial tile once the full tile
// exists.
func (t *remoteTiles) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	found := make([][]byte, len(tiles))
	for i, tile := range tiles {
		size := tile.W * tlog.HashSize
		data, err := t.get(t.ctx, "tile/"+tilePath(tile))
		if errors.Is(err, errNotServed) && tile.W < tileWidth {
			tile.W = tileWidth
			data, err = t.get(t.ctx, "tile/"+tilePath(tile))
		}
		if err != nil {
			return nil, err
		}
		if len(data) < size || len(data) != tile.W*tlog.HashSize {
			return nil, fmt.Errorf("tile %s: %d bytes, want %d", tilePath(tile), len(data), tile.W*tlog.HashSize)
		}
		found[i] = data[:size]
	}
	return found, nil
}

// Kept is a checkpoint of a log that its verifier kept.
type Kept struct {
	File       string
	Checkpoint *anchor.Checkpoint
}

// Verdict is the result of the verification of a log.
type Verdict struct {
	Origin    string        `json:"origin"`
	Size      int64         `json:"size"`
	Root      string        `json:"root"`
	Verified  bool          `json:"verified"` // no faults
	Faults    []string      `json:"faults"`
	GoesOn    []KeptSize    `json:"goes_on_from"` // the kept checkpoints that the log extends
	Witnesses []WitnessedAt `json:"witnesses"`
}

// KeptSize is the size of a log at a kept checkpoint.
type KeptSize struct {
	File string `json:"file"`
	Size int64  `json:"size"`
}

// WitnessedAt is a size that a witness has cosigned.
type WitnessedAt struct {
	Name string    `json:"name"`
	Size int64     `json:"size"`
	At   time.Time `json:"at"`
}

// Verify requests the log's head and tiles. The log must extend every kept checkpoint, and every
// witness must have cosigned it: either its head, or the newest checkpoint that the log publishes
// with cosignatures, which the head must extend. Verify also returns the signed head.
func (r *Remote) Verify(ctx context.Context, kept []Kept, witnesses []*anchor.Witness) (*Verdict, []byte, error) {
	head, signed, err := r.Checkpoint(ctx)
	if err != nil {
		return nil, nil, err
	}
	v := &Verdict{Origin: head.Origin, Size: head.Size, Root: head.Root.String(), Faults: []string{}, GoesOn: []KeptSize{}, Witnesses: []WitnessedAt{}}
	for _, k := range kept {
		if err := r.GoesOnFrom(ctx, k.Checkpoint, head); err != nil {
			v.Faults = append(v.Faults, fmt.Sprintf("%s: %v", k.File, err))
			continue
		}
		v.GoesOn = append(v.GoesOn, KeptSize{k.File, k.Checkpoint.Size})
	}
	if len(witnesses) > 0 {
		if err := r.witnessed(ctx, v, head, witnesses); err != nil {
			return nil, nil, err
		}
	}
	v.Verified = len(v.Faults) == 0
	return v, signed, nil
}

// witnessed adds to the verdict what the witnesses have cosigned.
func (r *Remote) witnessed(ctx context.Context, v *Verdict, head *anchor.Checkpoint, witnesses []*anchor.Witness) error {
	seen, signed, err := r.Cosigned(ctx)
	if err != nil {
		return err
	}
	if err := r.GoesOnFrom(ctx, seen, head); err != nil {
		v.Faults = append(v.Faults, fmt.Sprintf("the checkpoint that witnesses cosigned: %v", err))
		return nil
	}
	cosignatures, err := anchor.Cosignatures(signed, witnesses)
	if err != nil {
		v.Faults = append(v.Faults, err.Error())
		return nil
	}
	at := map[string]time.Time{}
	for _, c := range cosignatures {
		at[c.Name] = c.At
	}
	for _, w := range witnesses {
		if when, ok := at[w.Name()]; ok {
			v.Witnesses = append(v.Witnesses, WitnessedAt{w.Name(), seen.Size, when})
		} else {
			v.Faults = append(v.Faults, fmt.Sprintf("witness %q has not cosigned the log at %d leaves", w.Name(), seen.Size))
		}
	}
	return nil
}
