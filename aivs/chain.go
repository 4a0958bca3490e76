package aivs

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
)

// Chain computes the draft's hash chain over rows (section 2). The zero Chain is not usable; see
// NewChain.
type Chain struct {
	rows    int64
	prev    string
	links   hash.Hash // of all row hashes as text: the chain hash
	content hash.Hash // of the digests of inputs, outputs, errors: the seal
	scratch []byte
}

// NewChain returns a chain without rows.
func NewChain() *Chain {
	return &Chain{links: sha256.New(), content: sha256.New(), scratch: make([]byte, 0, 512)}
}

// Link makes r the chain's next row: it sets ID, PrevHash and RowHash.
func (c *Chain) Link(r *Row) {
	r.ID = c.rows + 1
	r.PrevHash = c.prev
	r.RowHash = c.hash(r)
	c.append(r)
}

// hash returns the row hash of draft section 2.1 over the row's own PrevHash, and over further
// fields, which some dialects have.
func (c *Chain) hash(r *Row, further ...string) string {
	c.scratch = r.appendPreimage(c.scratch[:0])
	for _, field := range further {
		c.scratch = append(append(c.scratch, ':'), field...)
	}
	sum := sha256.Sum256(c.scratch)
	c.scratch = hex.AppendEncode(c.scratch[:0], sum[:])
	return string(c.scratch)
}

// append adds a row whose RowHash is already correct.
func (c *Chain) append(r *Row) {
	c.rows++
	c.prev = r.RowHash
	c.scratch = append(c.scratch[:0], r.RowHash...)
	c.links.Write(c.scratch)
	for _, text := range [3]string{r.InputsJSON, r.OutputsJSON, r.Error} {
		c.scratch = append(c.scratch[:0], text...)
		sum := sha256.Sum256(c.scratch)
		c.scratch = append(c.scratch[:0], sum[:]...)
		c.content.Write(c.scratch)
	}
}

// Rows returns the number of rows linked.
func (c *Chain) Rows() int64 { return c.rows }

// Hash returns the chain hash of draft section 2.4 in hexadecimal digits: SHA-256 of the
// concatenated hexadecimal row hashes, or of "empty" when there are no rows.
func (c *Chain) Hash() string {
	if c.rows == 0 {
		return hexSHA256([]byte("empty"))
	}
	return hex.EncodeToString(c.links.Sum(nil))
}

// Content returns the digest that a seal row states: SHA-256 over the raw SHA-256 digests of
// inputs_json, outputs_json and error of every row so far.
func (c *Chain) Content() string { return hex.EncodeToString(c.content.Sum(nil)) }

func hexSHA256(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
