package seal

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/redact"
	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/schema"
)

// ErrTaken says that the plan's file name belongs to another bundle: two sessions have the same
// beginning of their id and the same second. The plan needs another name.
var ErrTaken = errors.New("another bundle has the file's name")

// ErrUnfit says that a bundle can never be made of the part. Retrying does not help.
var ErrUnfit = errors.New("no bundle can be made of this part")

// ErrOtherKey says that the plan names another key and that no bundle of that key exists. The
// plan needs the current key.
var ErrOtherKey = errors.New("the plan names another signing key")

// File returns the name, below the bundle directory, of a bundle with this export time. Each
// agent has its own folder.
func File(agentID, sessionID string, exportedAt int64) string {
	return filepath.Join(durable.SafeName(agentID), aivs.FileName(shown(sessionID), exportedAt))
}

// FileApart returns a name that no other part of any session has in that second, in a folder of
// the part's own. It is for a part whose name from File is taken by another bundle.
func FileApart(agentID, sessionID string, part, exportedAt int64) string {
	folder := durable.SafeName(shown(sessionID)) + "." + strconv.FormatInt(part, 10)
	return filepath.Join(durable.SafeName(agentID), folder, aivs.FileName(shown(sessionID), exportedAt))
}

// shown returns a session id without the secrets that it may contain, since the ledger and
// directory listings show file names. Two sessions may have the same result; see ErrTaken.
func shown(sessionID string) string {
	hidden, _ := redact.AllRules.Text(sessionID)
	return hidden
}

// Place writes the bundle of a part below dir, or adopts the file that an earlier attempt at the
// same plan left, also one by another process. Such a file is complete, because it was linked into place. Place returns the
// bundle's SHA-256 and size. If an adopted file has another verdict on the session than in, Place sets
// p.Verdict from the file, since verdicts on traces may have changed after it was written. The file's name survives a loss of power once the caller has synced
// its directory: a group has many bundles in one.
func Place(dir string, p *Part, in *aivs.Input, key ed25519.PrivateKey) (*aivs.Bundle, error) {
	file := filepath.Join(dir, p.Plan.File)
	existing, err := os.ReadFile(file)
	if err == nil {
		return adopt(existing, p, in)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for an existing bundle: %w", err)
	}
	if aivs.KeyID(key.Public().(ed25519.PublicKey)) != p.Plan.KeyID {
		return nil, ErrOtherKey
	}
	buffer := buffers.Get().(*bytes.Buffer)
	buffer.Reset()
	defer keep(buffer)
	bundle, err := aivs.Write(buffer, in, key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	if err := durable.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, err
	}
	err = durable.CreateUnsynced(file, buffer.Bytes(), 0o644)
	if errors.Is(err, fs.ErrExist) { // a process that owned the session before has placed it meanwhile
		return Place(dir, p, in, key)
	}
	if err != nil {
		return nil, err
	}
	return bundle, nil
}

// buffers pools the memory of bundles. Bundles that each grow a buffer of their own cost a tenth of
// sealing.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// keptBuffer is the capacity of the largest buffer that returns to the pool.
const keptBuffer = 1 << 20

func keep(buffer *bytes.Buffer) {
	if buffer.Cap() <= keptBuffer {
		buffers.Put(buffer)
	}
}

// adopt accepts an existing file as the bundle of a plan if it is that bundle, signed with the
// plan's key.
func adopt(existing []byte, p *Part, in *aivs.Input) (*aivs.Bundle, error) {
	report, err := aivs.Verify(bytes.NewReader(existing), aivs.Options{RequireSignature: true})
	if err != nil {
		return nil, fmt.Errorf("read the existing bundle %s: %w", p.Plan.File, err)
	}
	if !report.Intact || report.KeyID != p.Plan.KeyID {
		return nil, fmt.Errorf("%w: %s exists and is not a valid bundle signed by the plan's key", ErrTaken, p.Plan.File)
	}
	o := report.Opening
	if o == nil || o.SessionID != p.SessionID || o.AgentID != p.AgentID || o.Part != p.Plan.Part || o.PreviousBundleHash != p.Plan.Previous {
		return nil, fmt.Errorf("%w: %s", ErrTaken, p.Plan.File)
	}
	onSession, err := sessionFile(existing)
	if err != nil {
		return nil, fmt.Errorf("read the existing bundle %s: %w", p.Plan.File, err)
	}
	// The file may omit findings. Where it is what this part gives, the part's own verdict has them all.
	same := func(m aivs.Member) bool { return m.Name == aivs.SessionMember && bytes.Equal(m.Data, onSession) }
	if !slices.ContainsFunc(in.Members, same) {
		if p.Verdict, err = decodeVerdict(onSession); err != nil {
			return nil, fmt.Errorf("read the existing bundle %s: %w", p.Plan.File, err)
		}
	}
	return &aivs.Bundle{
		FileName:  filepath.Base(p.Plan.File),
		Size:      int64(len(existing)),
		SHA256:    report.SHA256,
		ChainHash: report.ChainHash,
		Rows:      report.Rows,
	}, nil
}

// SessionVerdict reads the verdict on the session from a verified bundle (.tar.gz). It returns
// nil for a bundle that is older than such verdicts.
func SessionVerdict(bundle []byte) (*schema.SessionVerdict, error) {
	text, err := sessionFile(bundle)
	if err != nil {
		return nil, err
	}
	return decodeVerdict(text)
}

// sessionFile returns the file of the verdict on the session, nil for a bundle without one.
func sessionFile(bundle []byte) ([]byte, error) {
	unzip, err := gzip.NewReader(bytes.NewReader(bundle))
	if err != nil {
		return nil, err
	}
	archive := tar.NewReader(unzip)
	for {
		entry, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if path.Base(entry.Name) != aivs.SessionMember {
			continue
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", aivs.SessionMember, err)
		}
		return text, nil
	}
}

func decodeVerdict(text []byte) (*schema.SessionVerdict, error) {
	if text == nil {
		return nil, nil
	}
	verdict := new(schema.SessionVerdict)
	if err := json.Unmarshal(text, verdict); err != nil {
		return nil, fmt.Errorf("%s: %w", aivs.SessionMember, err)
	}
	return verdict, nil
}
