package reading

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/plumbline/plumbline/pipeline/auth"
	"github.com/plumbline/plumbline/pipeline/problem"
	"github.com/plumbline/plumbline/pipeline/request"
	"github.com/plumbline/plumbline/pipeline/store"
	"github.com/plumbline/plumbline/schema"
)

const (
	defaultLimit = 100
	maxLimit     = 1000
)

// parameters reads the parameters of a request, and collects every fault. A fault's pointer is ?NAME.
type parameters struct {
	values url.Values
	faults []schema.Fault
}

// read returns the parameters of a request. Unknown and repeated ones are faults: a reader who
// misspells one must not get the answer to another question.
func read(r *http.Request, names ...string) *parameters {
	values, err := url.ParseQuery(r.URL.RawQuery)
	p := &parameters{values: values}
	if err != nil {
		p.fault("", "the parameters cannot be read: %v", err)
	}
	for name, given := range values {
		switch {
		case len(names) == 0:
			p.fault(name, "there is no such parameter: this address has none")
		case !slices.Contains(names, name):
			p.fault(name, "there is no such parameter: there are %s", strings.Join(names, ", "))
		case len(given) > 1:
			p.fault(name, "is given %d times: give it once", len(given))
		}
	}
	slices.SortFunc(p.faults, func(a, b schema.Fault) int { return strings.Compare(a.Pointer, b.Pointer) })
	return p
}

func (p *parameters) fault(name, format string, args ...any) {
	p.faults = append(p.faults, schema.Fault{Pointer: "?" + clip(name), Message: fmt.Sprintf(format, args...)})
}

// err returns the problem that lists the faults, or nil.
func (p *parameters) err() error {
	if len(p.faults) == 0 {
		return nil
	}
	return problem.Invalid(problem.WordInvalid, p.faults...)
}

// id returns an identifier, or "" if it is not given.
func (p *parameters) id(name string) string {
	text := p.values.Get(name)
	if p.values.Has(name) && (text == "" || len(text) > schema.MaxIDBytes) {
		p.fault(name, "%d bytes: want 1 to %d", len(text), schema.MaxIDBytes)
	}
	return text
}

// during returns the times from and to. Without them it returns all times.
func (p *parameters) during() (from, to time.Time) {
	from, to = p.time("from", schema.EarliestTime), p.time("to", schema.LatestTime)
	switch {
	case len(p.faults) > 0 || from.Before(to):
	case p.values.Has("to"):
		p.fault("to", "is not after from")
	default:
		p.fault("from", "is later than any trace can be")
	}
	return from, to
}

func (p *parameters) time(name string, absent time.Time) time.Time {
	if !p.values.Has(name) {
		return absent
	}
	at, err := time.Parse(time.RFC3339Nano, p.values.Get(name))
	if err != nil {
		p.fault(name, "%q is not an RFC 3339 time with a zone, such as 2026-01-31T12:30:00Z (write + as %%2B)", clip(p.values.Get(name)))
	}
	return at
}

func (p *parameters) limit() int {
	if !p.values.Has("limit") {
		return defaultLimit
	}
	n, err := strconv.Atoi(p.values.Get("limit"))
	if err != nil || n < 1 || n > maxLimit {
		p.fault("limit", "%q: want 1 to %d", clip(p.values.Get("limit")), maxLimit)
	}
	return n
}

// cursor reads the parameter cursor into the place after which the page begins. It reports whether
// it is given. A cursor is no right: the query is bound by the token as on the first page.
func (p *parameters) cursor(place any) bool {
	if !p.values.Has("cursor") {
		return false
	}
	text, err := base64.RawURLEncoding.DecodeString(p.values.Get("cursor"))
	if err == nil {
		err = json.Unmarshal(text, place, json.RejectUnknownMembers(true))
	}
	if err != nil {
		p.fault("cursor", "is not a next_cursor of this list")
	}
	return err == nil
}

// cursorAt returns the cursor of the page that begins after a place.
func cursorAt(place any) (string, error) {
	text, err := json.Marshal(place)
	return base64.RawURLEncoding.EncodeToString(text), err
}

// agents returns the agents of the token, and the one that the request asks about, if any. The error lists
// the faults of all parameters that were read so far.
func (p *parameters) agents(grant auth.Grant) (all store.Agents, one string, err error) {
	one = p.id("agent_id")
	if err := p.err(); err != nil {
		return all, "", err
	}
	if one != "" {
		if err := request.MaySpeakFor(grant, one); err != nil {
			return all, "", problem.New(http.StatusForbidden, "forbidden", "this token may not read agent %q: use a token that covers it", clip(one))
		}
		return store.Agents{IDs: []string{one}}, one, nil
	}
	all.IDs, all.Prefixes = grant.Covers()
	if len(all.IDs) == 1 && len(all.Prefixes) == 0 {
		one = all.IDs[0]
	}
	return all, one, nil
}
