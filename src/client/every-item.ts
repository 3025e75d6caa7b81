/** The items of all pages, page by page: for lists that give items and their total number. */
export async function* everyItem<Item>(
  pageOf: (page: { limit: number; offset: number }) => Promise<{ items: Item[]; total: number }>,
): AsyncGenerator<Item> {
  const limit = 200
  for (let offset = 0; ; offset += limit) {
    const { items, total } = await pageOf({ limit, offset })
    yield* items
    if (items.length < limit || offset + limit >= total) return
  }
}
