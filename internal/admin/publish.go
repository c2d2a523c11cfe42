package admin

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/tmshare/tmshare/internal/formats"
	"github.com/tmshare/tmshare/internal/publish"
)

// Document is the body of a request.
type Document struct {
	Reader io.Reader
	Size   int64 // in bytes; 0: not known

	Asked url.Values // how it is read: formats.Format.Asks

	mediaType string
	gzipped   bool
	merged    func(sp string) (*Document, error)
}

// Merged returns a document that is made by merging others, on the source locator
// prefix of the collection that it is imported to.
func Merged(merge func(sp string) (*Document, error)) *Document { return &Document{merged: merge} }

// on returns the document on the prefix of a collection, which sp points to.
func (d *Document) on(sp string) (*Document, error) {
	if d.merged == nil || sp == "" {
		return d, nil
	}
	return d.merged(sp)
}

// XTM returns an XTM document of size bytes, gzipped or not; 0 is a size that is
// not known.
func XTM(r io.Reader, size int64) *Document { return InFormat(formats.Default, r, size) }

// InFormat is XTM for a document in any format.
func InFormat(f *formats.Format, r io.Reader, size int64) *Document {
	b := bufio.NewReader(r)
	magic, _ := b.Peek(2)
	mediaType := "application/xml" // for all versions of XTM
	if f != formats.Default {
		mediaType = f.MediaType()
	}
	return &Document{Reader: b, Size: size, mediaType: mediaType, gzipped: bytes.Equal(magic, []byte{0x1F, 0x8B})}
}

// Import has the options for publishing a document as a collection. With empty Title, Summary and SP, the server
// chooses them, or keeps the present ones.
type Import struct {
	Name, Title, Summary string
	SP                   string // source locator prefix; fixed when the collection is created
	Create               bool   // create a missing collection
	Write
}

// Imported is the result of an [Import].
type Imported struct {
	publish.Published
	Created bool `json:"created"` // there was no such collection before
}

// Import publishes a document as the new version of a collection. A collection that was created for a document that
// the server then refuses is removed again.
func (c *Client) Import(ctx context.Context, im Import, doc *Document) (*Imported, error) {
	change := Change{}
	for field, value := range map[string]string{"title": im.Title, "summary": im.Summary} {
		if value != "" {
			change[field] = value
		}
	}
	there, err := c.Settings(ctx, im.Name)
	switch {
	case isMissing(err) && !im.Create:
		return nil, c.missing(ctx, im.Name)
	case isMissing(err) && im.DryRun:
		return c.previewNew(ctx, im, doc)
	case isMissing(err):
		return c.create(ctx, im, change, doc)
	case err != nil:
		return nil, err
	case im.SP != "" && there.Text("sp") != "" && im.SP != there.Text("sp"):
		return nil, fmt.Errorf("the source locator prefix of %s is %s for ever; publish the map under another name", im.Name,
			there.Text("sp"))
	}
	if doc, err = doc.on(there.Text("sp")); err != nil {
		return nil, err
	}
	p, err := c.publish(ctx, request{method: http.MethodPut, path: mapPath(im.Name), body: doc, Write: im.Write})
	if err != nil {
		return nil, err
	}
	if len(change) > 0 && !im.DryRun {
		if _, _, err := c.Put(ctx, im.Name, change, ""); err != nil {
			return nil, fmt.Errorf("the map is published, but not its title and summary: %w", err)
		}
	}
	return &Imported{Published: *p}, nil
}

// previewNew returns the possible changes of the first version of a missing collection. A document that is merged here
// asks for the prefix first.
func (c *Client) previewNew(ctx context.Context, im Import, doc *Document) (*Imported, error) {
	preview := func(body *Document) (*publish.Published, error) {
		r := request{method: http.MethodPut, path: mapPath(im.Name), body: body, Write: im.Write}
		if im.SP != "" {
			r.query = url.Values{"sp": {im.SP}}
		}
		return c.publish(ctx, r)
	}
	if doc.merged != nil {
		nothing, err := preview(XTM(strings.NewReader(`<topicMap xmlns="http://www.topicmaps.org/xtm/" version="2.1"/>`), 0))
		if err != nil {
			return nil, err
		}
		if doc, err = doc.merged(nothing.SP); err != nil {
			return nil, err
		}
	}
	p, err := preview(doc)
	return &Imported{Published: *p, Created: true}, err
}

// missing returns the error of a name that no collection has: it may be mistyped.
func (c *Client) missing(ctx context.Context, name string) error {
	all, err := c.Collections(ctx)
	if err != nil {
		return err
	}
	there := "the server has no collections yet"
	if len(all) > 0 {
		names := make([]string, len(all))
		for i := range all {
			names[i] = all[i].Name
		}
		there = "there are " + strings.Join(names, ", ")
	}
	return fmt.Errorf("there is no collection %q; %s. To make a new one of that name, add --create", name, there)
}

func (c *Client) create(ctx context.Context, im Import, change Change, doc *Document) (*Imported, error) {
	if im.SP != "" {
		change["sp"] = im.SP
	}
	settings, created, err := c.Put(ctx, im.Name, change, im.IfMatch)
	if err != nil {
		return nil, err
	}
	tag, err := c.ETag(ctx, im.Name)
	if err != nil {
		return nil, err
	}
	p := &publish.Published{}
	if doc, err = doc.on(settings.Text("sp")); err == nil {
		p, err = c.publish(ctx,
			request{method: http.MethodPut, path: mapPath(im.Name), body: doc,
				Write: Write{Author: im.Author, Message: im.Message}})
	}
	if err == nil {
		return &Imported{Published: *p, Created: created}, nil
	}
	if created {
		// Refused or interrupted: in either case remove the collection. If others have published meanwhile, the ETag
		// differs.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if _, stays := c.Delete(ctx, im.Name, Write{IfMatch: tag}); stays != nil {
			err = fmt.Errorf("%w\nThe collection %s, created for this, is still there: %w", err, im.Name, stays)
		}
	}
	return nil, err
}

// PutTopics publishes the statements of a document about some topics. topics are subject identifiers of topics that are
// published even if the document has only their identifiers.
func (c *Client) PutTopics(ctx context.Context, name string, topics []string, doc *Document,
	w Write) (*publish.Published, error) {
	r := request{method: http.MethodPost, path: mapPath(name) + "/topics", body: doc, Write: w}
	if len(topics) > 0 {
		r.query = url.Values{"topic": topics}
	}
	return c.publish(ctx, r)
}

func (c *Client) publish(ctx context.Context, r request) (*publish.Published, error) {
	p := &publish.Published{}
	_, err := c.ask(ctx, r, p)
	return p, err
}

// DeleteTopic deletes the topic with a subject identifier.
func (c *Client) DeleteTopic(ctx context.Context, name, si string, w Write) (*publish.Published, error) {
	at, err := c.topicPath(ctx, name, si, time.Time{})
	if err != nil {
		return nil, err
	}
	return c.publish(ctx, request{method: http.MethodDelete, path: at, Write: w})
}

// TopicForm selects the form of a topic.
type TopicForm struct {
	Extension string    // of the form, such as ".xtm21"
	At        time.Time // as it was then; zero: now
	Claims    bool      // with the item identifiers of the sources of its statements
}

// Topic writes the fragment of a topic to w.
func (c *Client) Topic(ctx context.Context, name, si string, form TopicForm, w io.Writer) error {
	path, err := c.topicPath(ctx, name, si, form.At)
	if err != nil {
		return err
	}
	query := atQuery(nil, form.At)
	if form.Claims {
		query = url.Values{"claims": {""}}
	}
	return c.copy(ctx, request{method: http.MethodGet, path: path + form.Extension, query: query, accept: "*/*"}, w)
}

// topicPath returns the address of a topic, or of its version at a time that is not zero. The server redirects to the
// public address, whose last part is the topic's key.
func (c *Client) topicPath(ctx context.Context, name, si string, at time.Time) (string, error) {
	find := mapPath(name) + "/topics"
	res, err := c.send(ctx, request{method: http.MethodGet, path: find, query: atQuery(url.Values{"si": {si}}, at)})
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	to, err := res.Location()
	if err != nil {
		return "", fmt.Errorf("%s does not lead to the topic: %w", c.addr+find, err)
	}
	return find + "/" + url.PathEscape(path.Base(to.Path)), nil
}
