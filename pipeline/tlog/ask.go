package tlog

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"
	"time"

	"github.com/plumbline/plumbline/aivs/anchor"
)

// askTimeout bounds one request to an authority.
const askTimeout = 30 * time.Second

// Over returns the authority at a URL (RFC 3161 section 3.4).
func Over(client *http.Client, url string) Authority {
	return func(ctx context.Context, query []byte) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(query))
		if err != nil {
			return nil, fmt.Errorf("ask for a time stamp: %w", err)
		}
		request.Header.Set("Content-Type", anchor.QueryType)
		request.Header.Set("Accept", anchor.ReplyType)
		answer, err := client.Do(request)
		if err != nil {
			return nil, fmt.Errorf("ask for a time stamp: %w", err)
		}
		defer func() { _ = answer.Body.Close() }()
		reply, err := io.ReadAll(io.LimitReader(answer.Body, anchor.MaxReply+1))
		switch kind := answer.Header.Get("Content-Type"); {
		case err != nil:
			return nil, fmt.Errorf("ask for a time stamp: %w", err)
		case answer.StatusCode != http.StatusOK:
			return nil, fmt.Errorf("ask for a time stamp: the authority answers %s", answer.Status)
		case !strings.HasPrefix(kind, anchor.ReplyType):
			return nil, fmt.Errorf("ask for a time stamp: the authority answers %.80q, want %s", kind, anchor.ReplyType)
		}
		return reply, nil
	}
}

// newNonce returns 64 random bits.
func newNonce() (*big.Int, error) {
	nonce, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 64))
	if err != nil {
		return nil, fmt.Errorf("nonce: %w", err)
	}
	return nonce, nil
}
