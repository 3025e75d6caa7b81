//! A program with the client that openapi-generator writes for Rust.

use openapi::apis::{configuration::*, links_api::*, Error};
use openapi::models::*;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let key = std::env::var("API_KEY").unwrap();
    let api_key = Some(ApiKey { prefix: None, key });
    let api = Configuration { api_key, ..Configuration::default() };

    let url = "https://example.com/rust".to_string();
    let created = shorten(&api, ShortenBody::new(url.clone())).await.unwrap();
    assert!(!created.reused && created.url == url);
    let reused = shorten(&api, ShortenBody::new(url)).await.unwrap();
    assert!(reused.reused && reused.passcode.is_none() && reused.code == created.code);
    let reserved = reserve(&api, ReserveBody::new("CLIENTRUST1".into())).await.unwrap();
    assert!(reserved.code == "CLIENTRUST1" && reserved.url.is_none());

    let urls = vec!["https://example.com/rust/batch".into(), "no URL".into()];
    let batch = bulk_shorten(&api, BulkShortenBody::new(urls)).await.unwrap();
    assert!(batch.results[0].ok && batch.results[0].code.is_some());
    assert!(!batch.results[1].ok && batch.results[1].error.is_some());

    let change = LinkChange {
        title: Some(Some("Poster".into())),
        tags: Some(Some(vec!["spring".into()])),
        ..LinkChange::new()
    };
    let changed = patch_link(&api, &created.code, change).await.unwrap();
    assert!(changed.title.as_deref() == Some("Poster") && changed.tags == ["spring"]);
    let change = LinkChange { title: Some(None), ..LinkChange::new() };
    let changed = patch_link(&api, &created.code, change).await.unwrap();
    assert!(changed.title.is_none() && changed.tags == ["spring"]);

    let line = "{\"code\":\"CLIENTRUST2\",\"url\":\"https://example.com/rust/import\",\"hits\":5000000000}\n";
    // The generator sends every body as JSON, so `import_links` cannot send lines.
    let imported = api
        .client
        .post(format!("{}/api/import", api.base_path))
        .header("X-API-Key", &api.api_key.as_ref().unwrap().key)
        .header("Content-Type", "application/x-ndjson")
        .body(line);
    let imported: ImportResult = imported.send().await.unwrap().json().await.unwrap();
    assert!(imported.links == 1);
    let page = list_links(&api, Some(200), None, Some("CLIENTRUST2")).await.unwrap();
    assert!(page.total == 1 && page.items[0].hit_count == 5_000_000_000);
    assert!(lookup(&api, "CLIENTRUST1").await.unwrap().url.is_none());

    let (code, passcode) = (created.code, created.passcode.unwrap());
    let url = "https://example.com/rust/2".into();
    let body = UpdateBody::new(code.clone(), passcode.clone(), url);
    update(&api, body).await.unwrap();
    delete_link(&api, DeleteBody::new(code.clone(), passcode)).await.unwrap();
    match get_link(&api, &code).await {
        Err(Error::ResponseError(answer)) => assert!(answer.status == 404),
        other => panic!("get a deleted link: {other:?}"),
    }
}
