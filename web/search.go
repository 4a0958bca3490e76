package web

import (
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/schema"
	"github.com/plumbline/plumbline/web/rows"
)

// found is how many things of each kind a search shows.
const found = 20

// searchPage is the data of search.html.
type searchPage struct {
	Text       string
	Agents     []rows.FoundAgent
	Sessions   []rows.Session
	Traces     []rows.FoundTrace
	Bundles    []rows.FoundBundle
	SeeBundles bool // the token has the scope
	Nothing    bool
}

// Most is how many things of each kind are shown.
func (p *searchPage) Most() int { return found }

// search answers with what has a text as its name, of each kind; without a text with the newest.
func (s *server) search(v *visit) (page, error) {
	p := &searchPage{Text: schema.Clip(v.URL.Query().Get("q"), schema.MaxIDBytes), SeeBundles: s.permits(v, auth.BundlesRead)}
	f := rows.Find{Agents: v.agents(), Text: p.Text, Limit: found}
	group, ctx := errgroup.WithContext(v.Context())
	group.Go(func() (err error) { p.Agents, err = s.rows.FindAgents(ctx, f); return err })
	group.Go(func() (err error) { p.Sessions, err = s.rows.FindSessions(ctx, f); return err })
	group.Go(func() (err error) { p.Traces, err = s.rows.FindTraces(ctx, f); return err })
	if p.SeeBundles {
		group.Go(func() (err error) { p.Bundles, err = s.rows.FindBundles(ctx, f); return err })
	}
	if err := group.Wait(); err != nil {
		return page{}, err
	}
	p.Nothing = len(p.Agents)+len(p.Sessions)+len(p.Traces)+len(p.Bundles) == 0
	return page{file: "search.html", title: "Search", data: p}, nil
}
