package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"fmt"
	"html/template"
	"mime"
	"net/http"
	"path"
	"time"
)

//go:embed assets/*
var assetFiles embed.FS

//go:embed templates/*.html
var templateFiles embed.FS

// asset is a file of style, script or picture. Its address has the hash of its bytes, so a browser keeps it
// for as long as it likes, and never has an old one.
type asset struct {
	address string
	kind    string
	bytes   []byte
}

// readAssets returns the assets by name.
func readAssets() (map[string]asset, error) {
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		return nil, err
	}
	all := map[string]asset{}
	for _, entry := range entries {
		text, err := assetFiles.ReadFile("assets/" + entry.Name())
		if err != nil {
			return nil, err
		}
		ending := path.Ext(entry.Name())
		name := entry.Name()[:len(entry.Name())-len(ending)]
		all[entry.Name()] = asset{
			address: fmt.Sprintf("/assets/%s.%.6x%s", name, sha256.Sum256(text), ending),
			kind:    mime.TypeByExtension(ending), bytes: text,
		}
	}
	return all, nil
}

// serve answers with the asset.
func (a asset) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", a.kind)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(a.bytes))
}

// readTemplates returns each page's template by its name, with the frame around it.
func readTemplates(functions template.FuncMap) (map[string]*template.Template, error) {
	entries, err := templateFiles.ReadDir("templates")
	if err != nil {
		return nil, err
	}
	all := map[string]*template.Template{}
	for _, entry := range entries {
		if entry.Name() == "frame.html" || entry.Name() == "parts.html" {
			continue
		}
		page, err := template.New("frame.html").Funcs(functions).Option("missingkey=error").
			ParseFS(templateFiles, "templates/frame.html", "templates/parts.html", "templates/"+entry.Name())
		if err != nil {
			return nil, err
		}
		all[entry.Name()] = page
	}
	return all, nil
}
