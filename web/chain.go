package web

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"path/filepath"
	"strconv"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/pipeline/reading"
	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/web/rows"
)

const (
	rowsOfPage   = 200
	chainAtOnce  = 2        // bundles that are verified at a time
	maxChainSize = 64 << 20 // of a bundle that is verified for a page
)

// chainPage is the data of chain.html.
type chainPage struct {
	rows.Bundle
	Report  *aivs.Report // nil: the bundle cannot be read here, for the reason
	Reason  string
	Altered bool // the file is not the one that was sealed
	Rows    []aivs.Row
	Before  int64  // rows before the page
	before  string // hash of the last of them
	Next    string // address of the next page; empty: this is the last one
}

// Linked reports whether a row of the page names the hash of the row before. The first row of a chain names none.
func (p *chainPage) Linked(i int) bool {
	before := p.before
	if i > 0 {
		before = p.Rows[i-1].RowHash
	}
	return p.Rows[i].PrevHash == before
}

// Beyond reports whether the page begins after the chain's last row.
func (p *chainPage) Beyond() bool { return p.Before > 0 && p.Before >= p.Report.Rows }

// chainAddress returns the address of a bundle's rows.
func chainAddress(sha256 string) string { return "/chain?sha256=" + sha256 }

// bundleOf returns the bundle that an address names, if the token covers its agent.
func (s *server) bundleOf(v *visit, text string) (bundle rows.Bundle, sealed schema.Digest, err error) {
	unknown := missing{"bundle with this SHA-256"}
	if err := sealed.UnmarshalText([]byte(text)); err != nil || sealed.IsZero() {
		return bundle, sealed, unknown
	}
	bundle, found, err := s.rows.Bundle(v.Context(), v.agents(), sealed.String())
	if err == nil && !found {
		err = unknown
	}
	return bundle, sealed, err
}

// chain answers with the rows of a bundle, each with its hash and the hash of the row before, as the verifier
// of bundles finds them.
func (s *server) chain(v *visit) (page, error) {
	bundle, sealed, err := s.bundleOf(v, v.URL.Query().Get("sha256"))
	if err != nil {
		return page{}, err
	}
	p := chainPage{Bundle: bundle}
	if p.Before, err = strconv.ParseInt(v.URL.Query().Get("after"), 10, 64); err != nil || p.Before < 0 {
		p.Before = 0
	}
	answer := page{file: "chain.html", title: "Chain of " + bundle.SessionID, data: &p}
	if bundle.Bytes > maxChainSize {
		p.Reason = fmt.Sprintf("It has %d MB, more than a page verifies. Download it, and verify it with plumbline bundle verify or with verify.py.", bundle.Bytes>>20)
		return answer, nil
	}
	select {
	case s.chains <- struct{}{}:
		defer func() { <-s.chains }()
	case <-v.Context().Done():
		return page{}, v.Context().Err()
	}
	file, err := reading.OpenBundle(s.cfg.BundleDir, bundle.Path, sealed)
	altered, isAltered := errors.AsType[*reading.Altered](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.Reason = "This console cannot read the file. It is in the exporter's bundle directory, as " + filepath.ToSlash(bundle.Path) + "; set bundle_dir of the console to a directory that has it."
	case isAltered:
		p.Altered, p.Reason = true, altered.Error()+"."
	case err != nil:
		return page{}, err
	default:
		p.verify(file)
		return answer, file.Close()
	}
	return answer, nil
}

// verify reads the bundle, and keeps the rows of the page.
func (p *chainPage) verify(file io.Reader) {
	report, err := aivs.Verify(file, aivs.Options{Row: func(row *aivs.Row) {
		if row.ID <= p.Before {
			p.before = row.RowHash
		} else if len(p.Rows) < rowsOfPage {
			p.Rows = append(p.Rows, *row)
			p.Rows[len(p.Rows)-1].InputsJSON, p.Rows[len(p.Rows)-1].OutputsJSON = "", "" // they may be large, and are not shown
		}
	}})
	if err != nil {
		report = aivs.Unreadable(err)
	}
	p.Report = report
	if n := len(p.Rows); n > 0 && p.Rows[n-1].ID < report.Rows {
		p.Next = chainAddress(p.SHA256) + "&after=" + strconv.FormatInt(p.Rows[n-1].ID, 10)
	}
}

// bundle answers with the file of a bundle, if its bytes are those that were sealed.
func (s *server) bundle(v *visit) (page, error) {
	bundle, sealed, err := s.bundleOf(v, v.PathValue("sha256"))
	if err != nil {
		return page{}, err
	}
	return page{serve: func(w http.ResponseWriter, r *http.Request) error {
		file, err := reading.OpenBundle(s.cfg.BundleDir, bundle.Path, sealed)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		w.Header().Set("Content-Type", "application/gzip")
		w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(filepath.ToSlash(bundle.Path))}))
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Hour)) // a recorder of a test has no deadline
		http.ServeContent(w, r, "", time.Time{}, file)
		return nil
	}}, nil
}
