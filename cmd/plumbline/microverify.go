package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/plumbline/plumbline/aivs"
	"github.com/plumbline/plumbline/aivs/keyring"
	"github.com/plumbline/plumbline/aivs/micro"
)

type microVerifyCommand struct {
	File    string   `arg:"" optional:"" help:"The proof, in JSON or as the strings of a TXT record; standard input by default."`
	Key     []string `sep:"none" placeholder:"HEX|FILE" help:"Public key that must have signed, as hexadecimal digits or a file; one of them where it is repeated. Only an unsigned proof needs none."`
	Keyring string   `type:"path" placeholder:"FILE" help:"Key list (keys.jsonl): any micro key that one of --key leads to may have signed, unless it had ended before the scan."`
	JSON    bool     `help:"Print the result as JSON."`
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
	data, err := c.read(ctx, con.in)
	if err != nil {
		return err
	}
	result, err := judgeMicro(data, keys, ring)
	if err != nil {
		return err
	}
	if err := c.show(con.out, result); err != nil {
		return err
	}
	if result.Result != micro.Pass {
		return errFoundBad
	}
	return nil
}

func (c *microVerifyCommand) read(ctx context.Context, in io.Reader) ([]byte, error) {
	if c.File != "" {
		file, err := openPlain(ctx, c.File)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, micro.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the proof: %w", err)
	}
	return data, nil
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
		return microResult{Result: micro.Fail, Message: "the signature is not that of this proof under this key"}, nil
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
	for fault := range strings.SplitSeq(result.Message, "\n") {
		if _, err := fmt.Fprintf(w, "%s: %s\n", result.Result, printable(fault)); err != nil {
			return err
		}
	}
	return nil
}
