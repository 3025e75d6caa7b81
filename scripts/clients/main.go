// A program with the client that openapi-generator writes for Go.
package main

import (
	"context"
	"fmt"
	"os"

	hopcode "hopcode.test/api/client"
)

func check(isRight bool, what string) {
	if !isRight {
		fmt.Fprintln(os.Stderr, "wrong:", what)
		os.Exit(1)
	}
}

func must[Result any, Response any](result Result, _ Response, err error) Result {
	check(err == nil, fmt.Sprint(err))
	return result
}

func main() {
	keys := map[string]hopcode.APIKey{"apiKey": {Key: os.Getenv("API_KEY")}}
	ctx := context.WithValue(context.Background(), hopcode.ContextAPIKeys, keys)
	links := hopcode.NewAPIClient(hopcode.NewConfiguration()).LinksAPI

	url := "https://example.com/go"
	created := must(links.Shorten(ctx).ShortenBody(*hopcode.NewShortenBody(url)).Execute())
	check(!created.Reused && created.Passcode.IsSet() && created.Url == url, "shorten")
	reused := must(links.Shorten(ctx).ShortenBody(*hopcode.NewShortenBody(url)).Execute())
	check(reused.Reused && reused.Passcode.Get() == nil && reused.Code == created.Code, "reuse")
	reserved := must(links.Reserve(ctx).ReserveBody(*hopcode.NewReserveBody("CLIENTGO1")).Execute())
	check(reserved.Code == "CLIENTGO1", "reserve")

	urls := []string{"https://example.com/go/batch", "no URL"}
	batch := must(links.BulkShorten(ctx).BulkShortenBody(*hopcode.NewBulkShortenBody(urls)).Execute())
	check(batch.Results[0].Ok && *batch.Results[0].Code != "", "batch, created")
	check(!batch.Results[1].Ok && *batch.Results[1].Error != "", "batch, refused")

	change := hopcode.NewLinkChange()
	change.SetTitle("Poster")
	change.SetTags([]string{"spring"})
	changed := must(links.PatchLink(ctx, created.Code).LinkChange(*change).Execute())
	check(*changed.Title.Get() == "Poster" && changed.Tags[0] == "spring", "change")
	change = hopcode.NewLinkChange()
	change.SetTitleNil()
	changed = must(links.PatchLink(ctx, created.Code).LinkChange(*change).Execute())
	check(changed.Title.Get() == nil && changed.Tags[0] == "spring", "clear")

	lines := `{"code":"CLIENTGO2","url":"https://example.com/go/import","hits":5000000000}` + "\n"
	imported := must(links.ImportLinks(ctx).Body(lines).Execute())
	check(imported.Links == 1 && imported.Results[0].Outcome == "created", "import")
	page := must(links.ListLinks(ctx).Limit(200).Search("CLIENTGO2").Execute())
	check(page.Total == 1 && page.Items[0].HitCount == 5_000_000_000, "list")
	found := must(links.Lookup(ctx, "CLIENTGO1").Execute())
	check(found.Url.Get() == nil, "lookup")

	next := hopcode.NewUpdateBody(created.Code, *created.Passcode.Get(), "https://example.com/go/2")
	check(must(links.Update(ctx).UpdateBody(*next).Execute()).Updated, "update")
	last := hopcode.NewDeleteBody(created.Code, *created.Passcode.Get())
	check(must(links.DeleteLink(ctx).DeleteBody(*last).Execute()).Deleted, "delete")
	_, response, err := links.GetLink(ctx, created.Code).Execute()
	check(err != nil && response.StatusCode == 404, "get a deleted link")
}
