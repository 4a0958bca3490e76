// Package viewer is one HTML page that verifies a bundle in a browser, offline, and shows its session.
//
// It owns the page and its scripts, which are a third verifier: they judge what aivs.Verify and verify.py
// judge, in the words of verify.py, with the browser's own cryptography and a SHA-256 that can be continued. The package imports
// nothing of aivs, so that the tests of aivs can compare the three; its caller says which verify.py are known.
//
// Invariants: the page loads nothing and sends nothing, and its content security policy forbids both;
// its scripts and styles are named in that policy by their digests; the same verifiers give the same page.
package viewer

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"strings"

	"github.com/plumbline/plumbline/schema"
)

//go:embed *.js page.html page.css
var files embed.FS

// judging are the scripts that judge a bundle, in the order in which they need each other.
var judging = []string{"says.js", "text.js", "digest.js", "archive.js", "curve.js", "log.js", "locate.js", "verify.js"}

// Verifier says what is known about a verify.py that Plumbline has written.
type Verifier struct {
	Known      bool `json:"known"`
	Attested   bool `json:"attested"`   // its bundles have an attestation if they are signed
	FormerGzip bool `json:"formerGzip"` // its bundles have the gzip header of earlier versions
}

// Script returns the judging scripts as one. verifiers has each known verify.py by its SHA-256 in
// lower-case hexadecimal digits.
func Script(verifiers map[string]Verifier) (string, error) {
	known, err := json.Marshal(verifiers) // in order of the digests
	if err != nil {
		return "", fmt.Errorf("encode the known verifiers: %w", err)
	}
	script := "\"use strict\";\nconst KNOWN_VERIFIERS = " + string(known) + ";\n"
	for _, name := range judging {
		script += strings.Replace(file(name), "\"use strict\";\n", "", 1)
	}
	return script, nil
}

// Link leads to another page of a site that serves this one.
type Link struct {
	Name, Address string
	Here          bool // to this page
}

// Page returns the whole page, and the content security policy that is in it, for a server that sends it as a header, too.
// The links, if there are any, are above it; the first one is the name of their site.
func Page(verifiers map[string]Verifier, links ...Link) (page []byte, policy string, err error) {
	script, err := Script(verifiers)
	if err != nil {
		return nil, "", err
	}
	limitations, err := json.Marshal(schema.Limitations())
	if err != nil {
		return nil, "", fmt.Errorf("encode the limitations: %w", err)
	}
	script += "const LIMITATIONS = " + string(limitations) + ";\n"
	script += strings.Replace(file("session.js")+file("page.js"), "\"use strict\";\n", "", 2)
	style := file("page.css")
	policy = "default-src 'none'; script-src " + source(script) + "; style-src " + source(style) + "; base-uri 'none'; form-action 'none'"
	page = []byte(strings.NewReplacer("{{policy}}", policy, "{{style}}", style, "{{script}}", script, "{{pages}}", navigation(links)).Replace(file("page.html")))
	return page, policy, nil
}

// navigation returns the links in HTML.
func navigation(links []Link) string {
	var text strings.Builder
	for _, link := range links {
		here := ""
		if link.Here {
			here = " aria-current=\"page\""
		}
		fmt.Fprintf(&text, "<a href=\"%s\"%s>%s</a>\n", html.EscapeString(link.Address), here, html.EscapeString(link.Name))
	}
	if text.Len() == 0 {
		return ""
	}
	return "<nav aria-label=\"Pages\">\n" + text.String() + "</nav>\n"
}

// source names a text in a content security policy.
func source(text string) string {
	digest := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(digest[:]) + "'"
}

func file(name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // the file is embedded
	}
	return string(text)
}
