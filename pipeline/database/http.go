package database

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/plumbline/plumbline/schema"
)

// The ports of the HTTP interface, unless a server's address is given.
const (
	portHTTP  = "8123"
	portHTTPS = "8443"
)

// HTTP is the HTTP interface of a ClickHouse server. It is for people's own statements: over the
// native protocol a result is not formatted, and FORMAT has no effect. All statements of one HTTP
// are in one session of the server, so SET applies to those that follow.
type HTTP struct {
	client         *http.Client
	address        url.URL
	user, password string
	settings       url.Values // of every statement
	session        string
}

// Statement is a statement and how its result is formatted.
type Statement struct {
	Text       string
	Format     string            // of the result, unless the text has a clause FORMAT
	Parameters map[string]string // values of {name:Type} in the text
}

// Exception is a statement's failure, as ClickHouse reports it.
type Exception struct {
	Code int // ClickHouse's error code; 0 if it is unknown
	Text string
}

func (e *Exception) Error() string { return e.Text }

// OpenHTTP prepares the HTTP interface of a DSN's server. With an empty address it is that of the
// DSN's first host, on port 8123, or 8443 with secure=true.
func OpenHTTP(cfg Config, address string) (*HTTP, error) {
	if err := cfg.complete(); err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	o, err := parseDSN(cfg.DSN)
	if err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	h := &HTTP{user: o.Auth.Username, password: o.Auth.Password, session: uuid.NewString(), settings: url.Values{}}
	if h.address, err = httpAddress(address, o.Addr[0], o.TLS != nil); err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy, transport.TLSClientConfig = nil, o.TLS
	transport.DisableCompression = true // with it, a server holds a failed result back, and mixes it with the failure
	transport.DialContext = (&net.Dialer{Timeout: o.DialTimeout}).DialContext
	h.client = &http.Client{Transport: transport}
	for name, value := range (&DB{cfg: cfg}).pinned(readPins) {
		h.settings.Set(name, fmt.Sprint(value))
	}
	h.settings.Set("validate_enum_literals_in_operators", "1") // severity = 'critical' is an error, and not an empty answer
	h.settings.Set("join_use_nulls", "1")                      // an outer join without a partner gives NULL, as in other databases
	h.settings.Set("session_timezone", "UTC")                  // today() is a day of the views
	for name, value := range o.Settings {                      // of the DSN
		h.settings.Set(name, fmt.Sprint(value))
	}
	h.settings.Del("max_block_size") // it is for the memory of the native driver
	h.settings.Set("final", "1")     // hides copies of rows
	h.settings.Set("cancel_http_readonly_queries_on_client_close", "1")
	h.settings.Set("database", o.Auth.Database)
	return h, nil
}

// httpAddress returns the address of the HTTP interface.
func httpAddress(given, native string, secure bool) (url.URL, error) {
	if given != "" {
		at, err := url.Parse(given)
		if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
			return url.URL{}, fmt.Errorf("%q is no address of ClickHouse's HTTP interface: want http://host:8123 or https://host:8443", given)
		}
		if at.User != nil {
			return url.URL{}, errors.New("the address of ClickHouse's HTTP interface takes user and password from the DSN: remove them")
		}
		return url.URL{Scheme: at.Scheme, Host: at.Host, Path: cmp.Or(at.Path, "/")}, nil
	}
	host, _, err := net.SplitHostPort(native)
	if err != nil {
		return url.URL{}, fmt.Errorf("clickhouse.dsn: %w", err)
	}
	if secure {
		return url.URL{Scheme: "https", Host: net.JoinHostPort(host, portHTTPS), Path: "/"}, nil
	}
	return url.URL{Scheme: "http", Host: net.JoinHostPort(host, portHTTP), Path: "/"}, nil
}

// OnlyTenant makes all statements read the rows of one tenant, also through views. It is a filter and
// not a right: a statement may set it off.
func (h *HTTP) OnlyTenant(tenant string) error {
	if !schema.PlainName(tenant) {
		return fmt.Errorf("tenant %q: want 1 to 64 of a-z, A-Z, 0-9, _ and -", tenant)
	}
	filters := make([]string, len(Tables))
	for i, table := range Tables {
		filters[i] = quoted(h.settings.Get("database")+"."+table) + ":" + quoted("tenant = "+quoted(tenant))
	}
	h.settings.Set("additional_table_filters", "{"+strings.Join(filters, ",")+"}")
	return nil
}

// Close ends the connections.
func (h *HTTP) Close() { h.client.CloseIdleConnections() }

// Run executes a statement and writes its result as the server formats it. A failed statement
// returns an Exception. If ctx ends, the statement is ended on the server, too.
func (h *HTTP) Run(ctx context.Context, s Statement, w io.Writer) error {
	id := uuid.NewString()
	values := url.Values{"query_id": {id}, "session_id": {h.session}, "session_timeout": {"3600"}}
	if s.Format != "" {
		values.Set("default_format", s.Format)
	}
	for name, value := range s.Parameters {
		values.Set("param_"+name, parameter(s.Text, name, value))
	}
	answer, err := h.post(ctx, values, s.Text)
	if err == nil {
		err = errors.Join(h.receive(answer, w), answer.Body.Close())
	}
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), h.kill(context.WithoutCancel(ctx), id))
	}
	return err
}

// parameter returns the value of a parameter as the server reads it, so that it has the value's bytes.
// The server unescapes a backslash and the letter after it, but not in a list.
func parameter(text, name, value string) string {
	if regexp.MustCompile(`\{\s*` + regexp.QuoteMeta(name) + `\s*:\s*(?:Array|Map|Tuple|Nested)\b`).MatchString(text) {
		return value
	}
	return escaped.Replace(value)
}

var escaped = strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`)

// post sends a statement. User and password are in headers: servers log addresses.
func (h *HTTP) post(ctx context.Context, values url.Values, text string) (*http.Response, error) {
	for name := range h.settings {
		if !values.Has(name) {
			values.Set(name, h.settings.Get(name))
		}
	}
	at := h.address
	at.RawQuery = values.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-ClickHouse-User", h.user)
	request.Header.Set("X-ClickHouse-Key", h.password)
	answer, err := h.client.Do(request)
	if failed, is := errors.AsType[*url.Error](err); is { // its text has the whole address with all settings
		return nil, fmt.Errorf("reach ClickHouse's HTTP interface at %s: %w", h.address.Redacted(), failed.Err)
	}
	return answer, err
}

// receive writes the result of an answer.
func (h *HTTP) receive(answer *http.Response, w io.Writer) error {
	if answer.StatusCode != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
		if err != nil {
			return fmt.Errorf("read ClickHouse's answer: %w", err)
		}
		return exception(answer, text)
	}
	tail := &tailWriter{w: w}
	_, err := io.Copy(tail, answer.Body)
	result, failure := brokenOff(tail.held, answer.Header.Get("X-ClickHouse-Exception-Tag"))
	switch {
	case failure != nil:
		return errors.Join(tail.flush(len(result)), exception(answer, failure))
	case errors.Is(err, io.ErrUnexpectedEOF): // an older server, or one that ended
		err = errors.New("ClickHouse ended the result before it was complete; its last line may say why")
	}
	return errors.Join(err, tail.flush(len(tail.held)))
}

// exception returns the failure that an answer's text reports.
func exception(answer *http.Response, text []byte) error {
	code, err := strconv.Atoi(answer.Header.Get("X-ClickHouse-Exception-Code"))
	if err != nil {
		code = 0
	}
	message := strings.TrimSpace(string(text))
	if message == "" {
		message = "ClickHouse answered " + answer.Status
	}
	return &Exception{Code: code, Text: message}
}

// brokenOff divides the end of an answer into the result and the failure of a statement whose result
// the server had begun to send. failure is nil if there is none. A tag that the answer begins with
// distinguishes the server's report from a result that looks like one.
func brokenOff(tail []byte, tag string) (result, failure []byte) {
	begin := []byte("\r\n__exception__\r\n" + tag + "\r\n")
	i := bytes.LastIndex(tail, begin)
	if tag == "" || i < 0 {
		return tail, nil
	}
	failure = tail[i+len(begin):]
	if end := bytes.LastIndexByte(bytes.TrimSuffix(failure, []byte(" "+tag+"\r\n__exception__\r\n")), '\n'); end >= 0 {
		failure = failure[:end] // without the length
	}
	return tail[:i], failure
}

// tailWriter writes everything but the last bytes, in which a server reports the failure of a
// statement whose result it has begun to send.
type tailWriter struct {
	w    io.Writer
	held []byte
}

// tailBytes is more than the server writes about a failure.
const tailBytes = 32 << 10

func (t *tailWriter) Write(p []byte) (int, error) {
	t.held = append(t.held, p...)
	if len(t.held) > 2*tailBytes {
		return len(p), t.flush(len(t.held) - tailBytes)
	}
	return len(p), nil
}

// flush writes the first n bytes that are held.
func (t *tailWriter) flush(n int) error {
	_, err := t.w.Write(t.held[:n])
	t.held = append(t.held[:0], t.held[n:]...)
	return err
}

// killTimeout limits how long ending a statement may take.
const killTimeout = 10 * time.Second

// codeSessionIsLocked is ClickHouse's error code while another statement of the session runs.
const codeSessionIsLocked = 373

// kill ends a statement on the server, and returns when it has ended. The server ends the statement
// of a user who only reads by itself, because the connection is closed; others need KILL, for which
// such a user has no right.
func (h *HTTP) kill(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, killTimeout)
	defer cancel()
	err := h.quiet(ctx, url.Values{"param_id": {id}}, "KILL QUERY WHERE query_id = {id:String} ASYNC")
	if exception, failed := errors.AsType[*Exception](err); failed && exception.Code == codeAccessDenied {
		err = nil
	}
	for err == nil {
		err = h.quiet(ctx, url.Values{"session_id": {h.session}}, "SELECT 1")
		exception, failed := errors.AsType[*Exception](err)
		if !failed || exception.Code != codeSessionIsLocked {
			break
		}
		select {
		case <-time.After(20 * time.Millisecond):
			err = nil
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		return fmt.Errorf("the statement may still run on the server, with query id %s: %w", id, err)
	}
	return nil
}

// quiet runs a statement without its result.
func (h *HTTP) quiet(ctx context.Context, values url.Values, text string) error {
	answer, err := h.post(ctx, values, text)
	if err != nil {
		return err
	}
	return errors.Join(h.receive(answer, io.Discard), answer.Body.Close())
}
