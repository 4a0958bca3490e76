package main

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/aivs/micro"
)

type microCommands struct {
	Sign   microSignCommand   `cmd:"" help:"Create the AIVS-Micro proof of one scan of one URL."`
	Verify microVerifyCommand `cmd:"" help:"Verify an AIVS-Micro proof. Exits with 0 only if it passes."`
}

type microSignCommand struct {
	URL     string    `arg:"" name:"url" help:"The URL that was scanned."`
	DOM     string    `placeholder:"FILE" xor:"dom" required:"" help:"File with the scanned content; the proof contains its SHA-256."`
	DOMHash string    `name:"dom-hash" placeholder:"SHA256" xor:"dom" required:"" help:"SHA-256 of the scanned content, instead of a file."`
	Scanner string    `required:"" placeholder:"FILE|SHA256" help:"File of the scanner's program, or its SHA-256."`
	Origin  string    `default:"local" help:"Origin of the scan."`
	Time    time.Time `placeholder:"TIME" help:"Time of the scan (RFC 3339). Default: now."`
	Key     string    `placeholder:"FILE" type:"path" help:"Key file to sign with. Without it the proof is unsigned."`
	TXT     bool      `name:"txt" help:"Print the strings of a DNS TXT record instead of JSON."`
}

// Help returns the examples.
func (*microSignCommand) Help() string {
	return examples(
		"plumbline micro sign https://example.com --dom page.html --scanner ./scanner --key plumbline-data/keys/micro.key > proof.json",
		"plumbline micro sign https://example.com --dom page.html --scanner ./scanner --txt",
	)
}

func (c *microSignCommand) Run(ctx context.Context, con *console) error {
	scan := micro.Scan{URL: c.URL, DOMHash: c.DOMHash, Origin: c.Origin, At: cmp.Or(c.Time, time.Now())}
	var err error
	if c.DOM != "" {
		if scan.DOMHash, err = hashFile(ctx, c.DOM); err != nil {
			return err
		}
	}
	scan.ScannerVersionHash = c.Scanner
	if b, err := hex.DecodeString(strings.TrimPrefix(c.Scanner, "sha256:")); err != nil || len(b) != sha256.Size {
		if scan.ScannerVersionHash, err = hashFile(ctx, c.Scanner); err != nil {
			return err
		}
	}
	proof, err := micro.New(scan)
	if err != nil {
		return usagef("this scan has faults:\n%w", err)
	}
	if c.Key != "" {
		key, err := loadKey(c.Key, keyring.Micro)
		if err != nil {
			return err
		}
		proof.Sign(key)
	}
	if !c.TXT {
		return writeJSON(con.out, proof)
	}
	parts, err := proof.TXT()
	if err != nil {
		return usageError{err}
	}
	_, err = fmt.Fprintln(con.out, micro.ZoneFile(parts))
	return err
}

func hashFile(ctx context.Context, path string) (string, error) {
	file, err := openPlain(ctx, path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

type microVerifyCommand struct {
	File    string   `arg:"" optional:"" help:"The proof, as JSON or as the strings of a TXT record. Default: standard input."`
	Key     []string `sep:"none" placeholder:"HEX|FILE" help:"Public key that must have signed, as hexadecimal digits or a file. If it is repeated, one of the keys must have signed. Only an unsigned proof needs none."`
	Keyring string   `type:"path" placeholder:"FILE" help:"Key list (keys.jsonl): any micro key that one of --key leads to may have signed, unless it ended before the scan."`
	JSON    bool     `help:"Print the result as JSON."`
}

// Help returns the examples.
func (*microVerifyCommand) Help() string {
	return examples("plumbline micro verify proof.json --key micro.pub")
}

// microResult is the result of the verification of a proof.
type microResult struct {
	Result  micro.Result `json:"result"`
	KeyID   string       `json:"key_id,omitempty"` // of the key that signed
	Message string       `json:"message,omitempty"`
}

// Run verifies the proof. Input that is no proof at all is also bad.
func (c *microVerifyCommand) Run(ctx context.Context, con *console) error {
	keys, err := readKeys(c.Key)
	if err != nil {
		return err
	}
	ring, err := readRing(c.Keyring, keys)
	if err != nil {
		return err
	}
	in := con.in
	if c.File != "" {
		file, err := openPlain(ctx, c.File)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, micro.MaxBytes+1))
	if err != nil {
		return fmt.Errorf("read the proof: %w", err)
	}
	result, err := judgeMicro(data, keys, ring)
	if err != nil {
		return err
	}
	return found(c.show(verdictWriter{con.out}, result), result.Result == micro.Pass)
}

// judgeMicro verifies a proof with the pinned keys or, given a key list, with the keys on it
// that the pinned ones lead to. A signed proof cannot be verified without a pinned key.
func judgeMicro(data []byte, pins []ed25519.PublicKey, ring *keyring.Ring) (microResult, error) {
	proof, err := micro.Read(data)
	switch {
	case err != nil:
		return microResult{Result: micro.Fail, Message: err.Error()}, nil
	case proof.Signature == micro.Unsigned:
		return microResult{Result: micro.Skip, Message: "the proof is unsigned: nothing is proven"}, nil
	case len(pins) == 0:
		return microResult{}, usagef("the proof is signed: give the public key that must have signed it with --key")
	}
	key := signerOf(proof, pins, ring)
	if key == nil {
		return microResult{Result: micro.Fail, Message: "the signature does not match this proof and key"}, nil
	}
	if ring != nil {
		// A proof has the date of its scan, which may be older than the key.
		err := ring.Accept(pins, key, keyring.Micro, proof.ScannedAt())
		if err != nil && !errors.Is(err, keyring.ErrEarly) {
			return microResult{Result: micro.Fail, KeyID: aivs.KeyID(key), Message: err.Error()}, nil
		}
	}
	return microResult{Result: micro.Pass, KeyID: aivs.KeyID(key)}, nil
}

// signerOf returns the key that signed the proof: a pinned one or, given a key list, any on
// the list. It returns nil if none of them did.
func signerOf(proof *micro.Proof, pins []ed25519.PublicKey, ring *keyring.Ring) ed25519.PublicKey {
	candidates := pins
	if ring != nil {
		candidates = nil
		for _, k := range ring.Keys() {
			candidates = append(candidates, k.Public())
		}
	}
	for _, key := range candidates {
		if proof.Verify(key) == micro.Pass {
			return key
		}
	}
	return nil
}

func (c *microVerifyCommand) show(w io.Writer, result microResult) error {
	if c.JSON {
		return writeJSON(w, result)
	}
	if result.Message == "" {
		_, err := fmt.Fprintln(w, result.Result)
		return err
	}
	out := lineWriter{w: w}
	for fault := range strings.SplitSeq(result.Message, "\n") {
		out.printf("%s: %s\n", result.Result, printable(fault))
	}
	return out.err
}
