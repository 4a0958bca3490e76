package cards_test

import (
	"slices"
	"testing"
)

func TestAgentsOfHost(t *testing.T) {
	registry := open(t, broker(t))
	for _, agent := range []string{
		"did:web:SHOP.example", "did:web:shop.example", "did:web:shop.example%3A8443", "https://shop.example/", "http://shop.example",
		"did:web:Bank.Example", "https://bank.example:443/agents/clerk",
		"https://mall.example/a", "https://mall.example/b", "https://mall.example",
		"https://only.example/agents/one", "did:web:path.example:agents:one",
		"https://[2001:DB8:0:0::1]:8080/", "did:web:%5B%3A%3A1%5D%3A8080",
		"did:web:", "did:web:%zz", "did:web:a%2Fb", "ftp://shop.example", "shop.example", "urn:uuid:1", "http://", "did:key:z6Mk",
	} {
		put(t, registry, card(agent, "card of "+agent, 1, 90))
	}
	for host, want := range map[string][]string{
		"shop.example":      {"did:web:shop.example", "did:web:SHOP.example", "https://shop.example/", "http://shop.example"},
		"SHOP.Example.":     {"did:web:shop.example", "did:web:SHOP.example", "https://shop.example/", "http://shop.example"},
		"shop.example:443":  {"did:web:shop.example", "did:web:SHOP.example", "https://shop.example/", "http://shop.example"},
		"shop.example:8443": {"did:web:shop.example%3A8443", "did:web:shop.example", "did:web:SHOP.example", "https://shop.example/", "http://shop.example"},
		"shop.example:9":    {"did:web:shop.example", "did:web:SHOP.example", "https://shop.example/", "http://shop.example"},
		"bank.example":      {"did:web:Bank.Example", "https://bank.example:443/agents/clerk"},
		"mall.example":      {"https://mall.example"}, // choosing one of the others would be a guess
		"only.example":      {"https://only.example/agents/one"},
		"path.example":      nil,
		"[2001:db8::1]:8080": {
			"https://[2001:DB8:0:0::1]:8080/"},
		"[2001:db8::1]":      nil,
		"[::1]:8080":         {"did:web:%5B%3A%3A1%5D%3A8080"},
		"[0:0:0:0::1]:8080":  {"did:web:%5B%3A%3A1%5D%3A8080"},
		"127.0.0.1:8080":     nil,
		"":                   nil,
		":8080":              nil,
		"a/b":                nil,
		"shop.example:x:y:z": nil,
	} {
		if got := registry.AgentsOfHost(host); !slices.Equal(got, want) {
			t.Errorf("host %q: %q, want %q", host, got, want)
		}
	}
}
