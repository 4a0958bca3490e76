package web

import (
	"net/http"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/viewer"
)

// bundleViewer is the page of plumbline bundle viewer: it verifies bundles in the browser, and neither asks the console for
// anything nor sends it anything.
type bundleViewer struct {
	page   []byte
	policy string // of its content
}

// readViewer returns the page, with the navigation of the console above it.
func readViewer() (v bundleViewer, err error) {
	links := []viewer.Link{{Name: "Plumbline", Address: "/"}}
	for _, to := range navigation {
		links = append(links, viewer.Link{Name: to.Name, Address: to.Address, Here: to.Address == "/verify"})
	}
	v.page, v.policy, err = viewer.Page(aivs.Verifiers(), links...)
	return v, err
}

// verify answers with the page. Its policy permits its own script and style in place of the console's files.
func (s *server) verify(*visit) (page, error) {
	return page{serve: func(w http.ResponseWriter, _ *http.Request) error {
		w.Header().Set("Content-Security-Policy", s.viewer.policy+"; frame-ancestors 'none'")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(s.viewer.page) // an error means that the browser is gone
		return nil
	}}, nil
}
