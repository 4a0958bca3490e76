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
	"strconv"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/pipeline/durable"
	"github.com/plumbline/plumbline/schema"
)

// ErrTaken says that a file with the plan's name holds another bundle: two
// sessions shared beginning and second. The plan needs another name.
var ErrTaken = errors.New("the file's name is taken by another bundle")

// ErrUnfit says that no bundle can be made of the part, however often it is tried.
var ErrUnfit = errors.New("no bundle can be made of this part")

// ErrOtherKey says that the plan is that of another key, whose bundle is not
// there. The plan needs the present key.
var ErrOtherKey = errors.New("the plan is that of another signing key")

// File is the name, below the bundle directory, of the bundle that a plan for
// this second would make: a folder for each agent.
func File(agentID, sessionID string, exportedAt int64) string {
	return filepath.Join(durable.SafeName(agentID), aivs.FileName(shown(sessionID), exportedAt))
}

// FileApart is a name that no other part of any session has at that second: in a
// folder of the part's own, for where another's bundle has the name that File gives.
func FileApart(agentID, sessionID string, part, exportedAt int64) string {
	folder := durable.SafeName(shown(sessionID)) + "." + strconv.FormatInt(part, 10)
	return filepath.Join(durable.SafeName(agentID), folder, aivs.FileName(shown(sessionID), exportedAt))
}

// shown is a session id without the secrets that it may hold: the ledger and listings
// have the names of files. Two sessions may have one name; see ErrTaken.
func shown(sessionID string) string {
	hidden, _ := aivs.AllRules.Text(sessionID)
	return hidden
}

// Place writes the bundle of a part below dir, or adopts the file that an
// earlier attempt at the same plan has left: whole, because it is renamed into
// place. It returns the bundle's SHA-256 and size. Of an adopted file p.Verdict
// becomes what the file says: verdicts on traces may have changed since.
func Place(dir string, p *Part, in *aivs.Input, key ed25519.PrivateKey) (*aivs.Bundle, error) {
	file := filepath.Join(dir, p.Plan.File)
	existing, err := os.ReadFile(file)
	if err == nil {
		return adopt(existing, p)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for an earlier bundle: %w", err)
	}
	if aivs.KeyID(key.Public().(ed25519.PublicKey)) != p.Plan.KeyID {
		return nil, ErrOtherKey
	}
	bundle, err := aivs.Build(in, key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	if err := durable.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, err
	}
	if err := durable.WriteFile(file, bundle.Bytes, 0o644); err != nil {
		return nil, err
	}
	return bundle, nil
}

// adopt takes an existing file for the bundle of a plan, if it is that, signed
// with the plan's key.
func adopt(existing []byte, p *Part) (*aivs.Bundle, error) {
	report, err := aivs.Verify(bytes.NewReader(existing), aivs.Options{RequireSignature: true})
	if err != nil {
		return nil, fmt.Errorf("read the earlier bundle %s: %w", p.Plan.File, err)
	}
	if !report.Intact || report.KeyID != p.Plan.KeyID {
		return nil, fmt.Errorf("%w: %s exists and is no valid bundle of the plan's key", ErrTaken, p.Plan.File)
	}
	o := report.Opening
	if o == nil || o.SessionID != p.SessionID || o.AgentID != p.AgentID || o.Part != p.Plan.Part || o.PreviousBundleHash != p.Plan.Previous {
		return nil, fmt.Errorf("%w: %s", ErrTaken, p.Plan.File)
	}
	if p.Verdict, err = SessionVerdict(existing); err != nil {
		return nil, fmt.Errorf("read the earlier bundle %s: %w", p.Plan.File, err)
	}
	return &aivs.Bundle{
		FileName:  filepath.Base(p.Plan.File),
		Size:      int64(len(existing)),
		SHA256:    report.SHA256,
		ChainHash: report.ChainHash,
		Rows:      report.Rows,
	}, nil
}

// SessionVerdict reads the verdict on the session out of a bundle (.tar.gz) that
// was verified; nil where it is of before there were any.
func SessionVerdict(bundle []byte) (*schema.SessionVerdict, error) {
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
		verdict := new(schema.SessionVerdict)
		if err := json.NewDecoder(archive).Decode(verdict); err != nil {
			return nil, fmt.Errorf("%s: %w", aivs.SessionMember, err)
		}
		return verdict, nil
	}
}
