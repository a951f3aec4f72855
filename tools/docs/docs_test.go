// Package docs checks that what the documentation says is so: its code
// compiles, the names in it exist, its links lead somewhere, and the parts of
// it that are made from files agree with them.
//
// With -update the latter are written anew:
//
//	go -C tools test ./docs -update
package docs

import (
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jobpoll/jobpoll/tools/internal/repo"
)

var update = flag.Bool("update", false, "write the parts of README.md that are made from files anew")

// fenced is a code block of a Markdown file.
type fenced struct {
	file string
	line int
	lang string
	text string
}

func blocks(t *testing.T) []fenced {
	t.Helper()
	var all []fenced
	for _, f := range repo.Files(t, "*.md") {
		var b *fenced
		for n, line := range strings.Split(repo.Read(t, f), "\n") {
			switch lang, isFence := strings.CutPrefix(line, "```"); {
			case !isFence && b != nil:
				b.text += line + "\n"
			case isFence && b == nil:
				b = &fenced{file: f, line: n + 1, lang: lang}
			case isFence:
				all = append(all, *b)
				b = nil
			}
		}
		if b != nil {
			t.Errorf("%s:%d: the code block does not end", f, b.line)
		}
	}
	return all
}

// importPaths are the packages that a fragment may use without an import.
var importPaths = map[string]string{
	"jobpoll": repo.Module, "polltest": repo.Module + "/polltest", "loopback": repo.Module + "/polltest/loopback",
	"provider": repo.Module + "/provider", "webhook": repo.Module + "/webhook", "sign": repo.Module + "/polltest/sign",
	"sqlstore": repo.Module + "/sqlstore", "backoff": "github.com/cenkalti/backoff/v4",
	"require": "github.com/stretchr/testify/require", "context": "context", "errors": "errors", "expvar": "expvar", "fmt": "fmt",
	"http": "net/http", "json": "encoding/json", "log": "log", "os": "os", "rand": "math/rand/v2", "sql": "database/sql", "signal": "os/signal", "slog": "log/slog",
	"strings": "strings", "synctest": "testing/synctest", "syscall": "syscall", "testing": "testing", "time": "time",
}

// whole makes a Go file of a fragment: as it is, or its declarations, or its
// statements in a function.
func whole(t *testing.T, text string) string {
	if strings.HasPrefix(text, "package ") {
		return text
	}
	preamble, err := os.ReadFile(filepath.Join("testdata", "preamble.go.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+text, parser.SkipObjectResolution); err != nil {
		text = "func _() error {\n" + text + "\nreturn nil\n}"
	}
	var imports strings.Builder
	for name, p := range importPaths {
		if regexp.MustCompile(`\b` + name + `\.`).MatchString(text + string(preamble)) {
			fmt.Fprintf(&imports, "import %s %q\n", name, p)
		}
	}
	return "package fragment\n" + imports.String() + string(preamble) + text
}

// checker finds type errors in Go text, with the packages as they are now.
func typeChecker(t *testing.T) func(text string) []error {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	for _, p := range importPaths {
		args = append(args, p)
	}
	export := map[string]string{}
	for line := range strings.Lines(repo.Run(t, repo.Root(t), "go", args...)) {
		if p, file, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			export[p] = file
		}
	}
	fset := token.NewFileSet()
	imp := importer.ForCompiler(fset, "gc", func(p string) (io.ReadCloser, error) {
		if export[p] == "" {
			return nil, fmt.Errorf("a fragment may not import %q", p)
		}
		return os.Open(export[p])
	})
	return func(text string) (errs []error) {
		f, err := parser.ParseFile(fset, "fragment.go", text, parser.SkipObjectResolution)
		if err != nil {
			return []error{err}
		}
		conf := types.Config{Importer: imp, Error: func(err error) {
			if e, ok := err.(types.Error); !ok || !e.Soft { // soft: a variable or import that is not used
				errs = append(errs, err)
			}
		}}
		_, _ = conf.Check("fragment", fset, []*ast.File{f}, nil)
		return errs
	}
}

func TestCodeCompiles(t *testing.T) {
	check := typeChecker(t)
	n := 0
	for _, b := range blocks(t) {
		if b.lang != "go" {
			continue
		}
		n++
		for _, err := range check(whole(t, b.text)) {
			t.Errorf("%s:%d: %v", b.file, b.line, err)
		}
	}
	if n < 5 {
		t.Errorf("only %d blocks of Go were found", n)
	}
	if len(check(whole(t, "jobpoll.NoSuchThing()"))) == 0 {
		t.Error("the check finds no error where there is one")
	}
}

// The code in a package comment is checked as well.
func TestCodeInThePackageDocCompiles(t *testing.T) {
	check := typeChecker(t)
	n := 0
	for _, s := range repo.Sources(t) {
		if s.Name != "doc.go" {
			continue
		}
		for part := range strings.SplitSeq(s.Doc.Text(), "\n\n") {
			if !strings.HasPrefix(part, "\t") || !strings.Contains(part, "(ctx") {
				continue
			}
			n++
			for _, err := range check(whole(t, strings.ReplaceAll(part, "\n\t", "\n")[1:])) {
				t.Errorf("doc.go: %v in\n%s", err, part)
			}
		}
	}
	if n == 0 {
		t.Error("no code was found")
	}
}

// names lists what the exported API of a package has: names, and Type.Member.
func names(t *testing.T) map[string]bool {
	t.Helper()
	has := map[string]bool{}
	for _, s := range repo.Sources(t) {
		if s.Test() || !slices.Contains([]string{".", "polltest", "polltest/loopback", "provider"}, s.Dir()) {
			continue
		}
		add := func(name string) { has[name], has[s.File.Name.Name+"."+name] = true, true }
		for _, d := range s.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					recv := d.Recv.List[0].Type
					if star, ok := recv.(*ast.StarExpr); ok {
						recv = star.X
					}
					if id, ok := recv.(*ast.Ident); ok {
						name = id.Name + "." + name
					}
				}
				add(name)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.ValueSpec:
						for _, n := range spec.Names {
							add(n.Name)
						}
					case *ast.TypeSpec:
						add(spec.Name.Name)
						for _, f := range members(spec.Type) {
							add(spec.Name.Name + "." + f)
						}
					}
				}
			}
		}
	}
	return has
}

func members(x ast.Expr) (all []string) {
	var fields *ast.FieldList
	switch x := x.(type) {
	case *ast.StructType:
		fields = x.Fields
	case *ast.InterfaceType:
		fields = x.Methods
	default:
		return nil
	}
	for _, f := range fields.List {
		for _, n := range f.Names {
			all = append(all, n.Name)
		}
		if id, ok := f.Type.(*ast.Ident); ok && len(f.Names) == 0 {
			all = append(all, id.Name) // embedded
		}
	}
	return all
}

// A name in the text that looks like one of ours is one of ours.
func TestNamesInTheTextExist(t *testing.T) {
	has := names(t)
	span := regexp.MustCompile("`([^`\n]+)`")
	ours := regexp.MustCompile(`^\*?((?:jobpoll|polltest|loopback|provider)\.[A-Z]\w*(?:\.[A-Z]\w*)?|[A-Z]\w*\.[A-Z]\w*)(?:\(.*\)|\{.*\})?$`)
	n := 0
	for _, f := range repo.Files(t, "*.md") {
		if f == "CHANGELOG.md" {
			continue // it tells of names that are gone
		}
		for line, text := range strings.Split(withoutFences(repo.Read(t, f)), "\n") {
			for _, m := range span.FindAllStringSubmatch(text, -1) {
				o := ours.FindStringSubmatch(m[1])
				if o == nil {
					continue
				}
				n++
				if !has[o[1]] {
					t.Errorf("%s:%d: %s does not exist", f, line+1, o[1])
				}
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d names were found", n)
	}
}

// withoutFences blanks code blocks out and keeps the line numbers.
func withoutFences(text string) string {
	in := false
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		fence := strings.HasPrefix(l, "```")
		if in || fence {
			lines[i] = ""
		}
		if fence {
			in = !in
		}
	}
	return strings.Join(lines, "\n")
}

var notInAnchors = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// anchors are the targets that a Markdown file offers.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(withoutFences(text)) {
		if h := strings.TrimLeft(line, "#"); h != line && strings.HasPrefix(h, " ") {
			h = notInAnchors.ReplaceAllString(strings.ToLower(strings.TrimSpace(h)), "")
			all[strings.ReplaceAll(h, " ", "-")] = true
		}
	}
	return all
}

func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	root := repo.Root(t)
	for _, f := range repo.Files(t, "*.md") {
		text := repo.Read(t, f)
		for _, m := range link.FindAllStringSubmatch(withoutFences(text), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			in := text
			if target != "" {
				file := path.Join(path.Dir(f), target)
				info, err := os.Stat(filepath.Join(root, file))
				if err != nil {
					t.Errorf("%s: the link to %s leads nowhere", f, target)
					continue
				}
				if info.IsDir() || anchor == "" {
					continue
				}
				in = repo.Read(t, file)
			}
			if !anchors(in)[anchor] {
				t.Errorf("%s: %s has no heading for #%s", f, path.Join(target), anchor)
			}
		}
	}
}

// fromFiles are the marked places of README.md that hold the text of a file.
var fromFiles = map[string]string{"schedules": "testdata/schedules/README_table.md"}

func TestMarkedPlacesHoldTheirFiles(t *testing.T) {
	readme := repo.Read(t, "README.md")
	for name, file := range fromFiles {
		begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
		before, rest, ok := strings.Cut(readme, begin)
		held, after, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Errorf("README.md has no place between %q and %q", strings.TrimSpace(begin), end)
			continue
		}
		b, err := os.ReadFile(filepath.Join(repo.Root(t), file))
		if os.IsNotExist(err) {
			t.Logf("%s is not there", file)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.TrimSpace(string(b)) + "\n"; held != want {
			if *update {
				readme = before + begin + want + end + after
				continue
			}
			t.Errorf("README.md: the place %q differs from %s: go -C tools test ./docs -update", name, file)
		}
	}
	if *update {
		if err := os.WriteFile(filepath.Join(repo.Root(t), "README.md"), []byte(readme), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheReadmeBeginsWithTwoCommands(t *testing.T) {
	var commands []string
	for _, b := range blocks(t) {
		if b.file == "README.md" && b.lang == "sh" {
			for line := range strings.Lines(b.text) {
				commands = append(commands, strings.TrimSpace(line))
			}
		}
	}
	run := slices.IndexFunc(commands, func(c string) bool { return strings.HasPrefix(c, "go run ") })
	test := slices.IndexFunc(commands, func(c string) bool { return strings.HasPrefix(c, "go test ") })
	if run < 0 || commands[run] != "go run ./examples/quickstart" {
		t.Errorf("the first program that README.md runs is not the quickstart: %q", commands)
	}
	if run < 0 || test < 0 || run > test {
		t.Errorf("README.md needs a command that runs something and then one that passes the tests, in sh blocks: %q", commands)
	}
}

func TestTheChangelogHasWhatIsNotReleased(t *testing.T) {
	text := repo.Read(t, "CHANGELOG.md")
	_, rest, ok := strings.Cut(text, "\n## [Unreleased]\n")
	if !ok {
		t.Fatal(`CHANGELOG.md has no "## [Unreleased]"`)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	allowed := []string{"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
	for _, m := range regexp.MustCompile(`(?m)^### (.+)$`).FindAllStringSubmatch(rest, -1) {
		if !slices.Contains(allowed, m[1]) {
			t.Errorf("CHANGELOG.md: %q is none of %q", m[1], allowed)
		}
	}
}
