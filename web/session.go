package web

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// How many logins are held. One more ends the oldest: that of the same token, so that one holder cannot end the logins
// of others.
const (
	mostSessions = 10_000
	mostOfAToken = 50
)

// session is one login. It has the hash of the token, and every request asks the token file again what the hash
// permits, so a revoked token ends its sessions. What the visitor does is sent to ingest with the token itself, which
// only the cookie's value decrypts.
type session struct {
	token   [sha256.Size]byte // SHA-256 of the bearer token
	sealed  []byte            // the token, encrypted
	form    string            // every form of the session's pages repeats it
	expires time.Time
}

// sessions holds the logins of this process by the SHA-256 of their cookie. A restart ends them.
type sessions struct {
	lasts time.Duration
	now   func() time.Time

	mu   sync.Mutex
	open map[[sha256.Size]byte]*session
}

func newSessions(lasts time.Duration) *sessions {
	return &sessions{lasts: lasts, now: time.Now, open: map[[sha256.Size]byte]*session{}}
}

// begin returns the cookie's value of a new session.
func (s *sessions) begin(token string) (cookie string) {
	cookie = rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	now, hash := s.now(), sha256.Sum256([]byte(token))
	var oldest, own [sha256.Size]byte // of all, and of the token
	ofToken := 0
	older := func(than [sha256.Size]byte, one *session) bool {
		first, ok := s.open[than]
		return !ok || one.expires.Before(first.expires)
	}
	for id, one := range s.open {
		if !now.Before(one.expires) {
			delete(s.open, id)
			continue
		}
		if older(oldest, one) {
			oldest = id
		}
		if one.token == hash {
			if ofToken++; older(own, one) {
				own = id
			}
		}
	}
	switch {
	case ofToken >= mostOfAToken:
		delete(s.open, own)
	case len(s.open) >= mostSessions:
		delete(s.open, oldest)
	}
	s.open[sha256.Sum256([]byte(cookie))] = &session{token: hash, form: rand.Text(), expires: now.Add(s.lasts),
		sealed: sealerOf(cookie).Seal(nil, make([]byte, nonceBytes), []byte(token), nil)}
	return cookie
}

const nonceBytes = 12 // always zero: a key encrypts one token only

// sealerOf returns the cipher of a session by the value of its cookie.
func sealerOf(cookie string) cipher.AEAD {
	key, err := hkdf.Key(sha256.New, []byte(cookie), nil, "the token of a login", 32)
	if err == nil {
		var block cipher.Block
		if block, err = aes.NewCipher(key); err == nil {
			var sealer cipher.AEAD
			if sealer, err = cipher.NewGCM(block); err == nil {
				return sealer
			}
		}
	}
	panic(err) // the sizes are constants
}

// tokenOf returns the token of a session, by the value of its cookie.
func (s *session) tokenOf(cookie string) (string, error) {
	token, err := sealerOf(cookie).Open(nil, make([]byte, nonceBytes), s.sealed, nil)
	if err != nil {
		return "", fmt.Errorf("the token of a login: %w", err)
	}
	return string(token), nil
}

// of returns the session of a cookie's value, or nil.
func (s *sessions) of(cookie string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.open[sha256.Sum256([]byte(cookie))]
	if one == nil || !s.now().Before(one.expires) {
		return nil
	}
	return one
}

func (s *sessions) end(cookie string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, sha256.Sum256([]byte(cookie)))
}

// genuine reports whether a form comes from a page of this session.
func (s *session) genuine(form string) bool {
	return subtle.ConstantTimeCompare([]byte(s.form), []byte(form)) == 1
}

// cookieName is the name of the session's cookie. Browsers accept the prefix __Host- only over HTTPS, from
// this very host.
func cookieName(r *http.Request) string {
	if r.TLS != nil {
		return "__Host-plumbline"
	}
	return "plumbline"
}

func (s *sessions) cookie(r *http.Request, value string) *http.Cookie {
	c := &http.Cookie{Name: cookieName(r), Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil, MaxAge: int(s.lasts.Seconds())}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}

// local returns a path of this console to continue at, and "/" for anything else: a login page must not
// lead to another site.
func local(next string) string {
	if !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}
