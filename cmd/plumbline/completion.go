package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// completionCommand prints the script with which a shell completes command lines. The script asks the
// same command for the words, which come from the declarations of the commands: they fit the
// installed version. The libraries that do this for kong know neither fish nor file names.
type completionCommand struct {
	Shell string   `arg:"" enum:"bash,zsh,fish" help:"The shell (${enum})."`
	Words []string `arg:"" optional:"" help:"For the script: the words of a command line, without the first. Print what may take the place of the last one."`
}

// Help returns the examples.
func (*completionCommand) Help() string {
	return "The script completes commands, flags and their known values; anything else is completed as a file name.\n\n" + examples(
		"plumbline completion bash > ~/.local/share/bash-completion/completions/plumbline",
		"plumbline completion zsh > ~/.zfunc/_plumbline",
		"plumbline completion fish > ~/.config/fish/completions/plumbline.fish",
		"plumbline completion bash -- bundle ver",
	)
}

// completionScripts are the scripts by shell. Each hands over the words up to the cursor, and takes a line
// for each candidate.
var completionScripts = map[string]string{
	"bash": `# bash completion of plumbline; to try it: source <(plumbline completion bash)
_plumbline() {
	local IFS=$'\n'
	COMPREPLY=($("${1/#\~/$HOME}" completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _plumbline plumbline
`,
	"zsh": `#compdef plumbline
# zsh completion of plumbline: the file _plumbline in a directory of fpath; to try it: source <(plumbline completion zsh)
_plumbline() {
	local -a candidates
	candidates=("${(@f)$(${~words[1]} completion zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	if [[ -n $candidates ]]; then
		_describe plumbline candidates
	else
		_files
	fi
}
if [[ $funcstack[1] == _plumbline ]]; then
	_plumbline "$@"
else
	compdef _plumbline plumbline
fi
`,
	"fish": `# fish completion of plumbline; to try it: plumbline completion fish | source
function __plumbline_complete
	set -l words (commandline -opc)
	set -l last (commandline -ct)
	set -l candidates ($words[1] completion fish -- $words[2..-1] "$last" 2>/dev/null)
	if set -q candidates[1]
		printf '%s\n' $candidates
	else
		__fish_complete_path $last
	end
end
complete -c plumbline -f -a '(__plumbline_complete)'
`,
}

// Run prints the script, or the candidates with what the shell shows beside them.
func (c *completionCommand) Run(con *console) error {
	if len(c.Words) == 0 {
		_, err := fmt.Fprint(con.out, completionScripts[c.Shell])
		return err
	}
	words := c.Words
	if c.Shell == "bash" {
		words = withoutAssignments(words)
	}
	out := lineWriter{w: con.out}
	for _, found := range candidates(newParser().Model.Node, words) {
		switch c.Shell {
		case "bash":
			out.printf("%s\n", found.word)
		case "zsh":
			out.printf("%s:%s\n", strings.ReplaceAll(found.word, ":", `\:`), found.help)
		case "fish":
			out.printf("%s\t%s\n", found.word, found.help)
		}
	}
	return out.err
}

// withoutAssignments returns words without the "=" between a flag and its value, which bash hands over as a
// word of its own.
func withoutAssignments(words []string) []string {
	kept := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return word == "=" })
	if words[len(words)-1] == "=" {
		kept = append(kept, "") // the value begins
	}
	return kept
}

// candidate is a word that may take the place of the last one.
type candidate struct {
	word string
	help string // one line
}

// candidates returns what may take the place of the last word of a command line: nothing where the
// declarations do not know, as for the name of a file.
func candidates(app *kong.Node, words []string) (found []candidate) {
	node, last := app, words[len(words)-1]
	arguments := 0          // before the last word
	var awaiting *kong.Flag // its value comes next
	for _, word := range words[:len(words)-1] {
		name, _, assigned := strings.Cut(word, "=")
		child := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == word })
		switch {
		case awaiting != nil:
			awaiting = nil
		case word == "--": // what follows belongs to another command
			return nil
		case strings.HasPrefix(word, "-"):
			if flag := flagNamed(node, name); flag != nil && !flag.IsBool() && !assigned {
				awaiting = flag
			}
		case child >= 0:
			node = node.Children[child]
		default:
			arguments++
		}
	}
	name, _, assigned := strings.Cut(last, "=")
	switch {
	case awaiting != nil:
		found = valuesOf(awaiting.Value, "")
	case strings.HasPrefix(last, "-") && assigned:
		if flag := flagNamed(node, name); flag != nil {
			found = valuesOf(flag.Value, name+"=")
		}
	case strings.HasPrefix(last, "-"):
		found = flagsOf(node)
	case len(node.Positional) > 0:
		found = valuesOf(node.Positional[min(arguments, len(node.Positional)-1)], "")
	default:
		for _, child := range node.Children {
			if !child.Hidden {
				found = append(found, candidate{child.Name, child.Help})
			}
		}
	}
	return slices.DeleteFunc(found, func(c candidate) bool { return !strings.HasPrefix(c.word, last) })
}

// flagNamed returns the flag of a command with a name that begins with "-", nil if there is none.
func flagNamed(node *kong.Node, name string) *kong.Flag {
	for _, flag := range slices.Concat(node.AllFlags(false)...) {
		if name == "--"+flag.Name || flag.Short != 0 && name == "-"+string(flag.Short) || slices.Contains(flag.Aliases, strings.TrimPrefix(name, "--")) {
			return flag
		}
	}
	return nil
}

func flagsOf(node *kong.Node) (found []candidate) {
	for _, flag := range slices.Concat(node.AllFlags(true)...) {
		found = append(found, candidate{"--" + flag.Name, flag.Help})
		if flag.Tag.Negatable != "" {
			found = append(found, candidate{"--no-" + flag.Name, "Not: " + flag.Help})
		}
	}
	return found
}

// valuesOf returns the values that a flag or argument is limited to, each after a prefix. Those that the
// command itself checks are in the tag values.
func valuesOf(value *kong.Value, prefix string) (found []candidate) {
	known := value.Enum
	if known == "" {
		known = value.Tag.Get("values")
	}
	for word := range strings.SplitSeq(known, ",") {
		if word = strings.TrimSpace(word); word != "" {
			found = append(found, candidate{prefix + word, ""})
		}
	}
	return found
}
