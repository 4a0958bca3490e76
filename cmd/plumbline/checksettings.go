package main

import (
	"context"
	"fmt"

	"github.com/plumbline/plumbline/pipeline/reconcile"
)

// settingFinding is a setting of the broker or the database with which the guarantees of
// docs/GUARANTEES.md do not hold.
type settingFinding struct {
	Kind    string `json:"kind"`   // "setting"
	Of      string `json:"of"`     // broker, database
	Object  string `json:"object"` // stream TRACES, table traces, …
	Setting string `json:"setting"`
	Found   string `json:"found"`
	Wanted  string `json:"wanted"`
	Why     string `json:"why"`
	Remedy  string `json:"remedy"`
}

func (f *settingFinding) text() string {
	return fmt.Sprintf("WEAK     %s: %s: %s is %s, want %s: %s; %s\n", f.Of, printable(f.Object), f.Setting, printable(f.Found), f.Wanted, f.Why, f.Remedy)
}

// checkSettings compares the settings of broker and database with what the guarantees need.
func (c *checkCommand) checkSettings(ctx context.Context, site *reconcile.Site, r *checkReport) error {
	broker, err := site.Client.Inspect(ctx)
	if err != nil {
		return err
	}
	r.summary.Unknown = append(r.summary.Unknown, broker.Unknown...)
	for _, w := range broker.Weaknesses {
		if err := r.weakness(&settingFinding{"setting", "broker", w.Object, w.Setting, w.Found, w.Wanted, w.Why(), w.Remedy}); err != nil {
			return err
		}
	}
	database, err := site.Store.Inspect(ctx)
	if err != nil {
		return err
	}
	r.summary.Unknown = append(r.summary.Unknown, database.Unknown...)
	for _, w := range database.Weaknesses {
		if err := r.weakness(&settingFinding{"setting", "database", w.Object, w.Setting, w.Found, w.Wanted, w.Why, w.Remedy}); err != nil {
			return err
		}
	}
	return nil
}
