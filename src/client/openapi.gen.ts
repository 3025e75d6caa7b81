/** Written by `npm run client:types` from the OpenAPI document. */

export interface Schemas {
  RuledDestination: {
    when: {
      os?: ("android" | "ios" | "windows" | "macos" | "linux" | "chromeos")[];
      device?: ("phone" | "tablet" | "desktop")[];
      /**
       * @description Preferred languages of the visitor. `de` includes `de-CH`.
       * @example [
       *   "de",
       *   "pt-BR"
       * ]
       */
      language?: string[];
      /**
       * @description Codes of ISO 3166-1. Needs COUNTRY_FILE or COUNTRY_HEADER.
       * @example [
       *   "DE"
       * ]
       */
      country?: string[];
      /** @description The value of each parameter; true: it is present. */
      query?: {
        [key: string]: unknown;
      };
      /** @example 2026-03-01T12:00:00.000Z */
      from?: string;
      /** @example 2026-03-01T12:00:00.000Z */
      until?: string;
      days?: ("mon" | "tue" | "wed" | "thu" | "fri" | "sat" | "sun")[];
      /**
       * @description The end is exclusive. Hours after midnight belong to the day before.
       * @example 18:00-02:00
       */
      hours?: string;
      /**
       * @description IANA name. With `days` or `hours` only.
       * @example Europe/Berlin
       */
      zone?: string;
    };
    /**
     * @description An http or https address of at most 8,192 characters, also when it is percent-encoded.
     * @example https://example.com/spring?from=poster
     */
    url: string;
  };
  ShortenedLink: {
    /** @example SPRING26 */
    code: string;
    url: string;
    /** @description Shown once, when the code is created. Null later. */
    passcode: string | null;
    short_url: string;
    qr_url: string;
    /** @example 2026-03-01T12:00:00.000Z */
    created_at: string;
    reused: boolean;
  };
  ReservedCode: {
    /** @example SPRING26 */
    code: string;
    /** @description Shown this once, and never again. */
    passcode: string;
    url: string | null;
    short_url: string;
    reserved: true;
    /** @example 2026-03-01T12:00:00.000Z */
    created_at: string;
  };
  BulkResult: {
    count: number;
    results: Schemas["BulkItem"][];
  };
  BulkItem: {
    /** @example SPRING26 */
    code?: string;
    url: string | null;
    /** @description Shown once, when the code is created. Null later. */
    passcode?: string | null;
    short_url?: string;
    qr_url?: string;
    /** @example 2026-03-01T12:00:00.000Z */
    created_at?: string;
    reused?: boolean;
    ok: boolean;
    error?: string;
  };
  UpdatedLink: {
    /** @example SPRING26 */
    code: string;
    url: string;
    short_url: string;
    updated: true;
  };
  DeletedCode: {
    /** @example SPRING26 */
    code: string;
    deleted: true;
  };
  LinkPage: {
    total: number;
    limit: number;
    offset: number;
    count: number;
    items: Schemas["ListedLink"][];
  };
  ListedLink: {
    /** @example SPRING26 */
    code: string;
    url: string | null;
    /** @example 2026-03-01T12:00:00.000Z */
    created_at: string;
    hit_count: number;
    short_url: string;
    qr_url: string;
  };
  Link: {
    /** @example SPRING26 */
    code: string;
    url: string | null;
    /** @example 2026-03-01T12:00:00.000Z */
    created_at: string;
    hit_count: number;
  };
  OwnLinkPage: {
    total: number;
    limit: number;
    offset: number;
    count: number;
    items: Schemas["OwnLink"][];
  };
  OwnLink: {
    /** @example SPRING26 */
    code: string;
    url: string | null;
    /** @example 2026-03-01T12:00:00.000Z */
    created_at: string;
    hit_count: number;
    short_url: string;
    qr_url: string;
    title: string | null;
    tags: string[];
    note: string | null;
    paused: boolean;
    /** @example 2026-03-01T12:00:00.000Z */
    starts_at: string | null;
    /** @example 2026-03-01T12:00:00.000Z */
    expires_at: string | null;
    max_hits: number | null;
    expired_url: string | null;
    forward_query: boolean;
    forward_path: "off" | "append";
    no_index: boolean;
    destinations: Schemas["RuledDestination"][];
    domain: string | null;
    /** @example 2026-03-01T12:00:00.000Z */
    delete_at: string | null;
    /** @description Visitors must enter a password. */
    protected: boolean;
    /** @description The address that people see: with the displayed alias, else with the code. */
    display_url: string;
    aliases: string[];
    domain_aliases: {
      [key: string]: string[];
    };
    /** @description Null: the newest alias on the domain of the link is shown, if it has one. */
    display_alias: string | null;
  };
  LinkChange: {
    /**
     * @description An http or https address of at most 8,192 characters, also when it is percent-encoded.
     * @example https://example.com/spring?from=poster
     */
    url?: string;
    /**
     * @description Shown in the dashboard only.
     * @example Poster
     */
    title?: string | null;
    /** @description Stored in small letters. */
    tags?: string[] | null;
    /** @description Shown in the dashboard only. */
    note?: string | null;
    /** @description Visitors get 404. The code stays reserved. */
    paused?: boolean | null;
    /**
     * @description Visitors get 404 before this time.
     * @example 2026-03-01T12:00:00.000Z
     */
    starts_at?: string | null;
    /**
     * @description From this time on visitors get 410, or `expired_url`.
     * @example 2026-03-01T12:00:00.000Z
     */
    expires_at?: string | null;
    /** @description After so many hits visitors get 410, or `expired_url`. */
    max_hits?: number | null;
    /**
     * @description An http or https address of at most 8,192 characters, also when it is percent-encoded.
     * @example https://example.com/spring?from=poster
     */
    expired_url?: string | null;
    /** @description The query of a request is added to the destination, and replaces parameters of the same name. A query of more than 4,096 characters is not added. */
    forward_query?: boolean | null;
    /** @description `append`: `/{code}/a/b` leads to the destination with `/a/b` behind its path, where no other link has that path. Not for destinations with a fragment. */
    forward_path?: "off" | "append" | null;
    /** @description Redirects have the header `X-Robots-Tag: noindex`. */
    no_index?: boolean | null;
    /** @description Destinations for some visitors or times: the first whose conditions all hold, else `url`. At most 20, of 16 KiB as JSON. */
    destinations?: Schemas["RuledDestination"][] | null;
    /**
     * @description The host that the short URL begins with: one of `GET /api/domains`. Null: that of the service. For a new link, absent: the default domain of the account.
     * @example go.example
     */
    domain?: string | null;
    /** @description Visitors enter it before they are redirected. It is stored as a hash, and no response contains it: `protected` says whether there is one. Null removes it. */
    password?: string | null;
    /**
     * @description All further paths of the link, without the first slash and in the letters that people see. They answer in any letter case, imported ones in exact case. With ALIASES=owners, only owners of the service can add some.
     * @example [
     *   "spring-sale"
     * ]
     */
    aliases?: string[] | null;
    /**
     * @description The same on the other domains: a list for each host.
     * @example {
     *   "go.example": [
     *     "menu"
     *   ]
     * }
     */
    domain_aliases?: {
      [key: string]: string[];
    } | null;
    /** @description The alias that people see; on another domain as `//go.example/menu`. Null: the newest on the domain of the link. */
    display_alias?: string | null;
  };
  LinkHistory: {
    items: Schemas["HistoryEvent"][];
    /** @description For `before`; null on the last page. */
    next: string | null;
  };
  HistoryEvent: {
    /** @example 2026-03-01T12:00:00.000Z */
    at: string;
    kind: "created" | "destination" | "destinations" | "aliases" | "domain" | "password" | "state" | "moved" | "disabled" | "enabled" | "deleted" | "restored" | "dead" | "alive";
    actor: Schemas["HistoryActor"];
    /** @description Of `created` and `destination` a URL; of `destinations` and `aliases` a list, of aliases only those removed and added; of `domain` a host; of `state` the changed properties; of `moved` names of accounts; of `disabled` the reason; of `deleted` the code, of one link alone; of `dead` and `alive` what the destination has answered. Else null. */
    before: unknown;
    /** @description Of `created` and `destination` a URL; of `destinations` and `aliases` a list, of aliases only those removed and added; of `domain` a host; of `state` the changed properties; of `moved` names of accounts; of `disabled` the reason; of `deleted` the code, of one link alone; of `dead` and `alive` what the destination has answered. Else null. */
    after: unknown;
    /** @description More than 1: of a batch. */
    links: number;
  };
  HistoryActor: {
    kind: "person" | "key" | "command_line" | "schedule" | "owner";
    name: string | null;
  };
  ImportedLink: {
    /** @description The code that the link gets. Absent: one is generated. */
    code?: string | null;
    /**
     * @description Null for a reserved code.
     * @example https://example.com/spring?from=poster
     */
    url: string | null;
    /** @description Further paths, in exact case. */
    aliases?: string[] | null;
    /** @description Further paths, in any case. */
    aliases_any_case?: string[] | null;
    /**
     * @description Further paths on other domains: a list for each host.
     * @example {
     *   "go.example": [
     *     "menu"
     *   ]
     * }
     */
    domain_aliases?: {
      [key: string]: string[];
    } | null;
    /**
     * @description The same, in any case.
     * @example {
     *   "go.example": [
     *     "menu"
     *   ]
     * }
     */
    domain_aliases_any_case?: {
      [key: string]: string[];
    } | null;
    /** @description The alias that people see. Absent: the first one. */
    display_alias?: string | null;
    /** @example 2026-03-01T12:00:00.000Z */
    created_at?: string | null;
    hits?: number | null;
    /** @description True: the link had a password, which is not in the file. It is paused. */
    protected?: boolean | null;
    /** @description The password that visitors enter, of any length. It is stored as a hash. */
    password?: string | null;
    /** @description In place of `password`: its bcrypt hash, of a cost of at most 12. */
    password_hash?: string | null;
    /**
     * @description Shown in the dashboard only.
     * @example Poster
     */
    title?: string | null;
    /** @description Stored in small letters. */
    tags?: string[] | null;
    /** @description Shown in the dashboard only. */
    note?: string | null;
    /** @description Visitors get 404. The code stays reserved. */
    paused?: boolean | null;
    /**
     * @description Visitors get 404 before this time.
     * @example 2026-03-01T12:00:00.000Z
     */
    starts_at?: string | null;
    /**
     * @description From this time on visitors get 410, or `expired_url`.
     * @example 2026-03-01T12:00:00.000Z
     */
    expires_at?: string | null;
    /** @description After so many hits visitors get 410, or `expired_url`. */
    max_hits?: number | null;
    /**
     * @description An http or https address of at most 8,192 characters, also when it is percent-encoded.
     * @example https://example.com/spring?from=poster
     */
    expired_url?: string | null;
    /** @description The query of a request is added to the destination, and replaces parameters of the same name. A query of more than 4,096 characters is not added. */
    forward_query?: boolean | null;
    /** @description `append`: `/{code}/a/b` leads to the destination with `/a/b` behind its path, where no other link has that path. Not for destinations with a fragment. */
    forward_path?: "off" | "append" | null;
    /** @description Redirects have the header `X-Robots-Tag: noindex`. */
    no_index?: boolean | null;
    /** @description Destinations for some visitors or times: the first whose conditions all hold, else `url`. At most 20, of 16 KiB as JSON. */
    destinations?: Schemas["RuledDestination"][] | null;
    /**
     * @description The host that the short URL begins with: one of `GET /api/domains`. Null: that of the service. For a new link, absent: the default domain of the account.
     * @example go.example
     */
    domain?: string | null;
  };
  ImportResult: {
    count: number;
    /** @description Links that were created. */
    links: number;
    /** @description What they add to the bytes that the account stores. */
    bytes: number;
    results: Schemas["ImportLineResult"][];
  };
  ImportLineResult: {
    outcome: "created" | "created_alias" | "created_paused" | "exists" | "kept" | "left_out" | "other_domain" | "repeated" | "path_taken" | "reserved_path" | "invalid_path" | "invalid_url" | "blocked" | "quota" | "unknown_domain" | "not_allowed" | "bad_row";
    code: string | null;
    message: string;
  };
  Domains: {
    items: Schemas["Domain"][];
  };
  Domain: {
    /** @example go.example */
    domain: string;
    /** @description Where visitors of `/` are redirected. */
    root_url: string | null;
    /** @description Where browsers that open an unknown path go. */
    not_found_url: string | null;
    /** @description `own`: it answers the codes of its own links only. `all`: every code. */
    codes: "own" | "all";
    /** @description New links of the account get it. */
    is_default: boolean;
  };
  Webhooks: {
    items: Schemas["Webhook"][];
  };
  Webhook: {
    id: number;
    url: string;
    events: ("link.created" | "link.updated" | "link.deleted" | "link.disabled" | "link.hits" | "link.dead" | "link.alive")[];
    enabled: boolean;
    /**
     * @description The first failure without a success.
     * @example 2026-03-01T12:00:00.000Z
     */
    failing_since: string | null;
    /** @description `gone` (410), `failing` (for five days) or `operator`; null if it is none of these. */
    disabled_reason: string | null;
    /** @example 2026-03-01T12:00:00.000Z */
    created_at: string;
  };
  WebhookDeliveries: {
    items: ({
        event: string;
        sequence: number;
        attempt: number;
        status: number | null;
        error: string | null;
        ms: number;
        /** @example 2026-03-01T12:00:00.000Z */
        at: string;
      })[];
  };
  WebhookWithSecret: {
    id: number;
    url: string;
    events: ("link.created" | "link.updated" | "link.deleted" | "link.disabled" | "link.hits" | "link.dead" | "link.alive")[];
    enabled: boolean;
    /**
     * @description The first failure without a success.
     * @example 2026-03-01T12:00:00.000Z
     */
    failing_since: string | null;
    /** @description `gone` (410), `failing` (for five days) or `operator`; null if it is none of these. */
    disabled_reason: string | null;
    /** @example 2026-03-01T12:00:00.000Z */
    created_at: string;
    /** @description Shown this once. */
    secret: string;
  };
  DeletedWebhook: {
    id: number;
    deleted: true;
  };
  RotatedSecret: {
    /** @description Shown this once. */
    secret: string;
    /** @example 2026-03-01T12:00:00.000Z */
    old_ends_at: string;
  };
  WebhookAttempt: {
    status: number | null;
    error: string | null;
    ms: number;
  };
  HitSeries: {
    /**
     * Format: date-time
     * @description When the first bucket begins.
     */
    from: string;
    /**
     * Format: date-time
     * @description When the last bucket ends.
     */
    to: string;
    by: "hour" | "day";
    time_zone: "UTC";
    /** @description Hits in all buckets. */
    total: number;
    /** @description In the order of time, also those without hits. */
    buckets: Schemas["HitBucket"][];
  };
  HitBucket: {
    /** Format: date-time */
    start: string;
    hits: number;
  };
  LinkHitSeries: {
    code: string;
    /**
     * Format: date-time
     * @description When the first bucket begins.
     */
    from: string;
    /**
     * Format: date-time
     * @description When the last bucket ends.
     */
    to: string;
    by: "hour" | "day";
    time_zone: "UTC";
    /** @description Hits in all buckets. */
    total: number;
    /** @description In the order of time, also those without hits. */
    buckets: Schemas["HitBucket"][];
  };
  VisitReport: {
    by: "referrer" | "country" | "device" | "browser" | "os" | "bot";
    /**
     * Format: date-time
     * @description When the first UTC day begins.
     */
    from: string;
    /**
     * Format: date-time
     * @description When the last UTC day ends.
     */
    to: string;
    /** @description All redirects of these days: exact, bots included. */
    hits: number;
    /** @description Redirects with details. */
    known: number;
    /** @description Under much load, the sums are made from a part of the redirects. */
    estimated: boolean;
    /** @description Redirects without those of bots, of those with details. */
    people: number;
    /** @description Redirects of bots and previews, of those with details. */
    bots: number;
    /** @description The most frequent first; without bots, unless `by` is `bot`. */
    values: Schemas["VisitValue"][];
    /** @description Redirects with values that are not listed. */
    other: number;
  };
  VisitValue: {
    /**
     * @description A stable key.
     * @example google.com
     */
    value: string;
    /** @example Google */
    name: string;
    hits: number;
  };
  LinkVisitReport: {
    code: string;
    by: "referrer" | "country" | "device" | "browser" | "os" | "bot";
    /**
     * Format: date-time
     * @description When the first UTC day begins.
     */
    from: string;
    /**
     * Format: date-time
     * @description When the last UTC day ends.
     */
    to: string;
    /** @description All redirects of these days: exact, bots included. */
    hits: number;
    /** @description Redirects with details. */
    known: number;
    /** @description Under much load, the sums are made from a part of the redirects. */
    estimated: boolean;
    /** @description Redirects without those of bots, of those with details. */
    people: number;
    /** @description Redirects of bots and previews, of those with details. */
    bots: number;
    /** @description The most frequent first; without bots, unless `by` is `bot`. */
    values: Schemas["VisitValue"][];
    /** @description Redirects with values that are not listed. */
    other: number;
  };
  QrAddresses: {
    code: string;
    url: string | null;
    short_url: string;
    qr_url: string;
    qr_storage_url: string;
  };
  ServiceStatus: {
    status: "operational";
    database: "ok";
    total_redirects: number;
    response_time_ms: number;
    /** Format: date-time */
    timestamp: string;
    version: string;
  };
  PasswordRefusal: {
    error: string;
  };
  listLinks_query: {
    /** @description How many codes to give. */
    limit?: number;
    /** @description How many codes to skip. */
    offset?: number;
    /** @description A part of the code or the URL, in any letter case. */
    search?: string;
  };
  listOwnLinks_query: {
    /** @description How many codes to give. */
    limit?: number;
    /** @description How many codes to skip. */
    offset?: number;
    /** @description Words that the code, URL, title, tags, note or aliases contain, in any letter case and without accents; or a short URL. */
    search?: string;
    /** @description Only links with this tag. */
    tag?: string;
    /** @description What visitors find. */
    state?: "active" | "paused" | "expired" | "scheduled" | "unused" | "dead";
  };
  history_query: {
    /** @description How many events to give. */
    limit?: number;
    /** @description `next` of the page before. */
    before?: string;
  };
  hits_query: {
    /** @description The first day (UTC) or time. Default: 30 days or 24 hours before `to`. */
    from?: string;
    /** @description The last day (UTC), or the time before which the range ends. Default: now. */
    to?: string;
    /** @description Buckets of an hour (at most 31 days) or of a UTC day (at most 400). */
    by?: "hour" | "day";
  };
  visits_query: {
    /** @description What the redirects are counted by. */
    by?: "referrer" | "country" | "device" | "browser" | "os" | "bot";
    /** @description The first day (UTC) or time. Default: 30 days or 24 hours before `to`. */
    from?: string;
    /** @description The last day (UTC), or the time before which the range ends. Default: now. */
    to?: string;
    /** @description How many values are listed. */
    limit?: number;
    /** @description CSV contains the columns value, name and hits. */
    format?: "json" | "csv";
  };
  qr_query: {
    /** @description Image format. */
    format?: "png" | "svg";
    /** @description Width and height of the image in pixels. Ignored for svg. */
    size?: number;
    /** @description Foreground color: 3 or 6 hex digits, with or without # (in a URL, %23). */
    dark?: string;
    /** @description Background color: 3 or 6 hex digits, with or without # (in a URL, %23). */
    light?: string;
    /** @description Light margin on each side, in modules. The standard asks for 4. */
    margin?: number;
    /** @description Error correction: 7, 15, 25 or 30 % of the code may be damaged. */
    level?: "L" | "M" | "Q" | "H";
    /** @description 1: the logo of the code's account in the middle. The level is then H. */
    logo?: "0" | "1";
    /** @description A text below the code, on one or two lines: 1 for the short URL without its scheme. A PNG becomes higher by it. The fonts of the service decide which scripts it can have. */
    caption?: string;
    /** @description Width of the image on paper in millimetres, with the margin. */
    mm?: number;
    /** @description 1: no background. The paper must be lighter than `dark`. */
    transparent?: "0" | "1";
    /** @description 1: the address in capital letters, which needs fewer modules. Its path must not have others. */
    capitals?: "0" | "1";
    /** @description Adds ?ref= to the address in the code, so that scans are a source of their own in the details of visits. */
    ref?: string;
  };
}
