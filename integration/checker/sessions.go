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
func (k *checker) checkSessionVerdicts(bundles []store.Bundle) {
	verdicts, err := k.Store.SessionVerdicts(k.Context(), "", "")
	if err != nil {
		k.Fatal(err)
	}
	type part struct {
		agent, session string
		number         int64
	}
	stored := map[part]*schema.SessionVerdict{}
	for _, v := range verdicts {
		stored[part{v.AgentID, v.SessionID, v.Part}] = v
	}
	if len(stored) != len(verdicts) || len(verdicts) != len(bundles) {
		k.Errorf("session verdicts: %d rows on %d parts, of which there are %d bundles", len(verdicts), len(stored), len(bundles))
	}
	for i := range bundles {
		b := &bundles[i]
		data, err := os.ReadFile(filepath.Join(k.Bundles, b.Path))
		if err != nil {
			k.Errorf("session verdicts: %v", err)
			continue
		}
		sealed, err := seal.SessionVerdict(data)
		v := stored[part{b.AgentID, b.SessionID, int64(b.Part)}]
		if err != nil || !reflect.DeepEqual(sealed, v) {
			k.Errorf("session verdicts: part %d of session %q of agent %s: bundle %s holds %+v (%v), the table contains %+v",
				b.Part, b.SessionID, b.AgentID, b.Path, sealed, err, v)
		} else if v.Traces.Total != int64(b.TraceCount) {
			k.Errorf("session verdicts: %s holds %d traces, %d are judged", b.Path, b.TraceCount, v.Traces.Total)
		}
	}
}
