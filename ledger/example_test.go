package ledger_test

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/plumbline/plumbline/ledger"
)

// A ledger of two entries is written and validated. A changed entry is then found.
func Example() {
	opening := ledger.Opening{Agent: "did:web:shop.example", Created: time.Date(2026, 3, 14, 15, 30, 0, 0, time.UTC)}
	genesis, err := opening.Data()
	if err != nil {
		log.Fatal(err)
	}
	var chain ledger.Chain
	var file []byte
	for _, e := range []struct {
		kind ledger.Type
		data []byte
	}{{ledger.Genesis, genesis}, {ledger.Claim, []byte(`{"amount": 5}`)}} {
		entry, err := chain.Append(e.kind, e.data)
		if err != nil {
			log.Fatal(err)
		}
		file = entry.AppendLine(file)
	}
	summary, err := ledger.Validate(bytes.NewReader(file), nil)
	fmt.Println(summary.Entries, "entries,", summary.Last == chain.Last(), err)

	changed := bytes.Replace(file, []byte(`"amount":5`), []byte(`"amount":9`), 1)
	_, err = ledger.Validate(bytes.NewReader(changed), nil)
	if fault, ok := errors.AsType[*ledger.Fault](err); ok {
		fmt.Println("entry", fault.Seq, "in line", fault.Line, "has the fault", fault.Kind)
	}

	// Output:
	// 2 entries, true <nil>
	// entry 1 in line 2 has the fault hash
}
