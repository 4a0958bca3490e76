package checker

import (
	"os"
	"path/filepath"
	"reflect"

	"github.com/plumbline/plumbline/pipeline/seal"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

// checkSessionVerdicts: each bundle contains the verdict on its part of the session,
// and the table has the same verdict, once.
func (w *walk) checkSessionVerdicts(bundles []store.Bundle) {
	verdicts, err := w.Store.SessionVerdicts(w.Context(), "", "")
	if err != nil {
		w.Fatal(err)
	}
	type part struct {
		agent, session string
		number         int64
	}
	told := map[part]*schema.SessionVerdict{}
	for _, v := range verdicts {
		told[part{v.AgentID, v.SessionID, v.Part}] = v
	}
	if len(told) != len(verdicts) || len(verdicts) != len(bundles) {
		w.Errorf("session verdicts: %d rows on %d parts, of which there are %d bundles", len(verdicts), len(told), len(bundles))
	}
	for i := range bundles {
		b := &bundles[i]
		data, err := os.ReadFile(filepath.Join(w.Bundles, b.Path))
		if err != nil {
			w.Errorf("session verdicts: %v", err)
			continue
		}
		sealed, err := seal.SessionVerdict(data)
		v := told[part{b.AgentID, b.SessionID, int64(b.Part)}]
		if err != nil || !reflect.DeepEqual(sealed, v) {
			w.Errorf("session verdicts: part %d of session %q of agent %s: bundle %s holds %+v (%v), the table tells %+v",
				b.Part, b.SessionID, b.AgentID, b.Path, sealed, err, v)
		} else if v.Traces.Total != int64(b.TraceCount) {
			w.Errorf("session verdicts: %s holds %d traces, %d are judged", b.Path, b.TraceCount, v.Traces.Total)
		}
	}
}
