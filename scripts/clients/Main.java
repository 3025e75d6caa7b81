import java.util.List;
import org.openapitools.client.ApiException;
import org.openapitools.client.Configuration;
import org.openapitools.client.api.LinksApi;
import org.openapitools.client.model.*;

/** A program with the client that openapi-generator writes for Java's own HTTP client. */
public class Main {
  static void check(boolean isRight, String what) {
    if (!isRight) throw new IllegalStateException("wrong: " + what);
  }

  public static void main(String[] args) throws ApiException {
    String key = System.getenv("API_KEY");
    var client = Configuration.getDefaultApiClient();
    client.setRequestInterceptor(request -> request.header("X-API-Key", key));
    var links = new LinksApi(client);

    String url = "https://example.com/java";
    var created = links.shorten(new ShortenBody().url(url));
    check(!created.getReused() && created.getUrl().equals(url), "shorten");
    var reused = links.shorten(new ShortenBody().url(url));
    check(reused.getReused() && reused.getPasscode() == null, "reuse");
    check(reused.getCode().equals(created.getCode()), "reuse");
    var reserved = links.reserve(new ReserveBody().code("CLIENTJAVA1"));
    check(reserved.getCode().equals("CLIENTJAVA1") && reserved.getUrl() == null, "reserve");

    var urls = List.of("https://example.com/java/batch", "no URL");
    var results = links.bulkShorten(new BulkShortenBody().urls(urls)).getResults();
    check(results.get(0).getOk() && results.get(0).getCode() != null, "batch, created");
    check(!results.get(1).getOk() && results.get(1).getError() != null, "batch, refused");

    var change = new LinkChange().title("Poster").tags(List.of("spring"));
    var changed = links.patchLink(created.getCode(), change);
    check(changed.getTitle().equals("Poster"), "change");
    check(changed.getTags().equals(List.of("spring")), "change");
    changed = links.patchLink(created.getCode(), new LinkChange().title(null));
    check(changed.getTitle() == null && changed.getTags().equals(List.of("spring")), "clear");

    var line =
        "{\"code\":\"CLIENTJAVA2\",\"url\":\"https://example.com/java/import\",\"hits\":5000000000}\n";
    var imported = links.importLinks(line, null);
    check(imported.getLinks() == 1, "import");
    check(imported.getResults().get(0).getOutcome().getValue().equals("created"), "import");
    var page = links.listLinks(200, null, "CLIENTJAVA2");
    check(page.getTotal() == 1 && page.getItems().get(0).getHitCount() == 5_000_000_000L, "list");
    check(links.lookup("CLIENTJAVA1").getUrl() == null, "lookup");

    var code = created.getCode();
    var passcode = created.getPasscode();
    var next = new UpdateBody().code(code).passcode(passcode).url("https://example.com/java/2");
    check(links.update(next).getUpdated(), "update");
    var last = new DeleteBody().code(code).passcode(passcode);
    check(links.deleteLink(last).getDeleted(), "delete");
    try {
      links.getLink(code);
      check(false, "get a deleted link");
    } catch (ApiException error) {
      check(error.getCode() == 404, "get a deleted link");
    }
  }
}
