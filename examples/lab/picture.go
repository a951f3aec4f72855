package main

import (
	"bytes"
	"cmp"
	"fmt"
	"image/color"
	"io"
	"math"
	"os"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The size of the picture, of which the first panel takes a part.
const (
	width, height = 11 * vg.Inch, 5.6 * vg.Inch
	firstPart     = 0.64
)

var (
	blue   = color.RGBA{R: 0x1f, G: 0x5f, B: 0xb4, A: 255}
	orange = color.RGBA{R: 0xd9, G: 0x6a, B: 0x0f, A: 255}
	grey   = color.RGBA{R: 0x8a, G: 0x8a, B: 0x8a, A: 255}
	dark   = color.RGBA{R: 0x44, G: 0x44, B: 0x44, A: 255}
	pale   = color.RGBA{R: 0xe4, G: 0xe4, B: 0xe4, A: 255}
)

// drawAll writes the picture as name.svg and name.png.
func drawAll(r results, name string) error {
	svg := vgsvg.New(width, height)
	if err := both(r, draw.New(svg)); err != nil {
		return err
	}
	png := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(144), vgimg.UseBackgroundColor(color.White))}
	if err := both(r, draw.New(png)); err != nil {
		return err
	}
	for ending, c := range map[string]io.WriterTo{".svg": svg, ".png": png} {
		var b bytes.Buffer
		if _, err := c.WriteTo(&b); err != nil {
			return err
		}
		if err := os.WriteFile(name+ending, otherFonts(b.Bytes()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// otherFonts names fonts of the same widths, for where the first is not there.
func otherFonts(picture []byte) []byte {
	return bytes.ReplaceAll(picture, []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif"))
}

// both draws the two panels side by side.
func both(r results, c draw.Canvas) error {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	trade, err := tradePanel(r)
	if err != nil {
		return err
	}
	lesson, err := lessonPanel(r)
	if err != nil {
		return err
	}
	cut := vg.Length(firstPart) * width
	const margin = 8
	trade.Draw(draw.Crop(c, margin, cut-width-margin, margin, -margin))
	lesson.Draw(draw.Crop(c, cut+margin, -2*margin, margin, -margin))
	return nil
}

// tradePanel draws for how many looks each policy knows the end how late.
func tradePanel(r results) (*plot.Plot, error) {
	p := newPlot(fmt.Sprintf("What a look buys: %d jobs, %d profiles", r.jobs, r.profiles), "looks a job", "mean delay until the end is known, s")
	p.X.Tick.Marker, p.Y.Tick.Marker = steps125{}, steps125{}
	spots := &labels{avoid: [][]point{r.frontier, r.curve}}

	frontier, err := line(r.frontier, color.Black, 1)
	if err != nil {
		return nil, err
	}
	frontier.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
	curve, err := line(r.curve, blue, 2.2)
	if err != nil {
		return nil, err
	}
	peers, err := dots(r.peers, grey, 2.6)
	if err != nil {
		return nil, err
	}
	knots, err := dots(r.curve, blue, 2.6)
	if err != nil {
		return nil, err
	}
	table, err := dots([]point{r.table, r.unknown}, orange, 3.4)
	if err != nil {
		return nil, err
	}
	table.Shape = draw.BoxGlyph{}
	own, err := dots([]point{r.own}, blue, 4)
	if err != nil {
		return nil, err
	}
	spots.add([]point{{fmt.Sprintf("jobpoll, PollCost %g s", r.price), r.own.looks, r.own.late}}, blue)
	spots.add(slices.DeleteFunc(slices.Clone(r.curve), func(q point) bool { return q.looks == r.own.looks }), blue)
	spots.add([]point{{"right class", r.table.looks, r.table.late}, {"nothing expected", r.unknown.looks, r.unknown.late}}, orange)
	// Those that come closest get their names first.
	spots.add(slices.SortedFunc(slices.Values(r.peers), func(a, b point) int { return cmp.Compare(a.cost(r.price), b.cost(r.price)) }), dark)
	p.Add(frontier, curve, peers, knots, own, table, spots)
	p.Legend.Left = true
	p.Legend.Add("optimum, if durations were known", frontier)
	p.Legend.Add("jobpoll, learning, over PollCost", curve)
	p.Legend.Add("jobpoll's table, before it has learnt", table)
	p.Legend.Add("defaults of other libraries", peers)
	all := append(append(append([]point{r.table, r.unknown}, r.peers...), r.curve...), r.frontier...)
	p.X.Min, p.X.Max = ends(all, func(q point) float64 { return q.looks })
	p.Y.Min, p.Y.Max = ends(all, func(q point) float64 { return q.late })
	return p, nil
}

// lessonPanel draws how jobpoll comes closer to the optimum.
func lessonPanel(r results) (*plot.Plot, error) {
	p := newPlot(fmt.Sprintf("What it learns, PollCost %g s", r.price), "completions of the profile so far", "times the optimum, at the same jobs")
	p.X.Tick.Marker, p.Y.Tick.Marker = binNames(r.learning), halves{}
	p.Legend.Top = true
	series := []struct {
		name  string
		of    func(learned) float64
		color color.Color
		width float64
	}{
		{"delay", func(l learned) float64 { return l.late }, blue, 1},
		{"cost: PollCost x looks + delay", func(l learned) float64 { return l.cost }, blue, 2.2},
		{"cost of the table, right class", func(l learned) float64 { return l.table }, orange, 1.4},
	}
	top := 1.5
	for i, s := range series {
		xy := make(plotter.XYs, len(r.learning))
		for k, l := range r.learning {
			xy[k] = plotter.XY{X: float64(k), Y: s.of(l)}
			top = max(top, s.of(l))
		}
		l, dots, err := plotter.NewLinePoints(xy)
		if err != nil {
			return nil, err
		}
		l.Color, l.Width = s.color, vg.Points(s.width)
		dots.Color, dots.Shape, dots.Radius = s.color, draw.CircleGlyph{}, vg.Points(2.4)
		if i == 0 {
			l.Dashes = []vg.Length{vg.Points(2), vg.Points(2)}
		}
		p.Add(l, dots)
		p.Legend.Add(s.name, l, dots)
	}
	one, err := plotter.NewLine(plotter.XYs{{X: -0.3, Y: 1}, {X: float64(len(r.learning)) - 0.7, Y: 1}})
	if err != nil {
		return nil, err
	}
	one.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
	p.Add(one)
	p.Legend.Add("optimum", one)
	p.X.Min, p.X.Max = -0.3, float64(len(r.learning))-0.7
	p.Y.Min, p.Y.Max = 0, top*1.35
	return p, nil
}

// binNames labels the bins of the learning curve, which stand evenly.
func binNames(bins []learned) plot.ConstantTicks {
	var t plot.ConstantTicks
	for k, b := range bins {
		t = append(t, plot.Tick{Value: float64(k), Label: strconv.Itoa(int(b.completions)) + "+"})
	}
	return t
}

// halves are ticks at every half.
type halves struct{}

// Ticks implements plot.Ticker.
func (halves) Ticks(lo, hi float64) []plot.Tick {
	var ticks []plot.Tick
	step := 0.5
	for (hi-lo)/step > 12 {
		step *= 2
	}
	for v := math.Ceil(lo/step) * step; v <= hi; v += step {
		ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'g', 4, 64)})
	}
	return ticks
}

func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	for _, f := range []*font.Font{&p.Title.TextStyle.Font, &p.Legend.TextStyle.Font, &p.X.Label.TextStyle.Font, &p.X.Tick.Label.Font, &p.Y.Label.TextStyle.Font, &p.Y.Tick.Label.Font} {
		f.Typeface, f.Variant = "Liberation", "Sans"
	}
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.TextStyle.Font.Size, p.Title.Padding = 12, 6
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font.Size, a.Tick.Label.Font.Size = 10, 9
		a.Label.Padding = 4
	}
	p.Legend.TextStyle.Font.Size, p.Legend.Padding = 9, 3
	p.Legend.ThumbnailWidth = 22
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = pale, pale
	p.Add(grid)
	return p
}

func line(points []point, c color.Color, w float64) (*plotter.Line, error) {
	l, err := plotter.NewLine(xys(points))
	if err == nil {
		l.Color, l.Width = c, vg.Points(w)
	}
	return l, err
}

func dots(points []point, c color.Color, radius float64) (*plotter.Scatter, error) {
	s, err := plotter.NewScatter(xys(points))
	if err == nil {
		s.Color, s.Shape, s.Radius = c, draw.CircleGlyph{}, vg.Points(radius)
	}
	return s, err
}

// log is how looks and delays stand on an axis: it has no zero, so next to
// nothing stands for it. The axes themselves are linear, because the label of
// a logarithmic one takes up room where it is not.
func log(v float64) float64 { return math.Log10(max(v, 1e-3)) }

func xys(points []point) plotter.XYs {
	xy := make(plotter.XYs, len(points))
	for i, p := range points {
		xy[i] = plotter.XY{X: log(p.looks), Y: log(p.late)}
	}
	return xy
}

// ends gives the ends of an axis, with room on both sides.
func ends(points []point, of func(point) float64) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, p := range points {
		lo, hi = min(lo, log(of(p))), max(hi, log(of(p)))
	}
	return lo - 0.08, hi + 0.12
}

// steps125 are ticks at 1, 2 and 5 times the powers of ten; where those would
// be many, the powers only have a label.
type steps125 struct{}

// Ticks implements plot.Ticker.
func (steps125) Ticks(lo, hi float64) []plot.Tick {
	var ticks []plot.Tick
	for k := math.Floor(lo); k <= math.Ceil(hi); k++ {
		for _, m := range []float64{1, 2, 5} {
			v := m * math.Pow(10, k)
			t := plot.Tick{Value: log(v)}
			if t.Value < lo || t.Value > hi {
				continue
			}
			if hi-lo < 4.5 || m == 1 {
				t.Label = strconv.FormatFloat(v, 'g', 6, 64)
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}
