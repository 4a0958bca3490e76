package redact_test

import (
	"fmt"
	"log"

	"github.com/plumbline/plumbline/aivs/redact"
)

// One secret is under a name of the draft, the other only in a text.
func ExampleRules_Record() {
	record := []byte(`{"api_key": "hunter2", "log": "GET https://example.com/?access_token=hunter2", "max_tokens": 100}`)
	hidden, count, err := redact.AllRules.Record(record)
	if err != nil {
		log.Fatal(err) // not JSON
	}
	fmt.Println(string(hidden))
	fmt.Println(count.Draft, "by the draft's rule,", count.Optional, "by the optional rules")

	// Output:
	// {"api_key": "[REDACTED]", "log": "GET https://example.com/?access_token=[REDACTED]", "max_tokens": 100}
	// 1 by the draft's rule, 1 by the optional rules
}
