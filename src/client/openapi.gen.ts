/** Written by `npm run client:types` from the OpenAPI document. */

export interface paths {
  "/api/shorten": {
    post: operations["shorten"];
  };
  "/api/reserve": {
    post: operations["reserve"];
  };
  "/api/bulk-shorten": {
    post: operations["bulkShorten"];
  };
  "/api/update": {
    post: operations["update"];
  };
  "/api/delete": {
    post: operations["delete"];
  };
  "/api/list": {
    get: operations["list"];
  };
  "/api/lookup/{code}": {
    get: operations["lookup"];
  };
  "/api/links/{code}": {
    get: operations["getLink"];
    patch: operations["patchLink"];
  };
  "/api/import": {
    post: operations["importLinks"];
  };
  "/api/export": {
    get: operations["exportLinks"];
  };
  "/api/hits": {
    get: operations["hits"];
  };
  "/api/links/{code}/hits": {
    get: operations["linkHits"];
  };
  "/api/visits": {
    get: operations["visits"];
  };
  "/api/links/{code}/visits": {
    get: operations["linkVisits"];
  };
  "/api/qr/{code}": {
    get: operations["qr"];
  };
  "/api/qr-image/{code}": {
    get: operations["qrImage"];
  };
  "/qr/{code}": {
    get: operations["qrStorage"];
  };
  "/api/status": {
    get: operations["status"];
  };
  "/{code}": {
    get: operations["follow"];
  };
}

export type webhooks = Record<string, never>;

export type components = Record<string, never>;

export type $defs = Record<string, never>;

export type external = Record<string, never>;

export interface operations {

  shorten: {
    requestBody: {
      content: {
        "application/json": {
          /**
           * @description An http or https address of at most 8,192 characters, also when it is percent-encoded.
           * @example https://example.com/spring?from=poster
           */
          url: string;
        };
      };
    };
    responses: {
      /** @description The code that the account has for this URL. */
      200: {
        content: {
          "application/json": {
            /** @example SPRING26 */
            code: string;
            url: string;
            /** @enum {string|null} */
            passcode: null;
            /** Format: uri */
            short_url: string;
            /** Format: uri */
            qr_url: string;
            /**
             * Format: date-time
             * @example 2026-03-01T12:00:00.000Z
             */
            created_at: string;
            /** @enum {boolean} */
            reused: true;
          };
        };
      };
      /** @description A new code, with its passcode. */
      201: {
        content: {
          "application/json": {
            /** @example SPRING26 */
            code: string;
            url: string;
            /** @description Shown this once, and never again. */
            passcode: string;
            /** Format: uri */
            short_url: string;
            /** Format: uri */
            qr_url: string;
            /**
             * Format: date-time
             * @example 2026-03-01T12:00:00.000Z
             */
            created_at: string;
            /** @enum {boolean} */
            reused: false;
          };
        };
      };
    };
  };
  reserve: {
    requestBody: {
      content: {
        "application/json": {
          code: string;
        };
      };
    };
    responses: {
      /** @description The code, with its passcode. */
      201: {
        content: {
          "application/json": {
            /** @example SPRING26 */
            code: string;
            /** @description Shown this once, and never again. */
            passcode: string;
            /** @enum {string|null} */
            url: null;
            /** Format: uri */
            short_url: string;
            /** @enum {boolean} */
            reserved: true;
            /**
             * Format: date-time
             * @example 2026-03-01T12:00:00.000Z
             */
            created_at: string;
          };
        };
      };
    };
  };
  bulkShorten: {
    requestBody: {
      content: {
        "application/json": {
          urls: string[];
        };
      };
    };
    responses: {
      /** @description One result a URL, in order. */
      201: {
        content: {
          "application/json": {
            count: number;
            results: ({
                /** @example SPRING26 */
                code: string;
                url: string;
                /** @description Shown this once, and never again. */
                passcode: string;
                /** Format: uri */
                short_url: string;
                /** Format: uri */
                qr_url: string;
                /**
                 * Format: date-time
                 * @example 2026-03-01T12:00:00.000Z
                 */
                created_at: string;
                /** @enum {boolean} */
                reused: false;
                /** @enum {boolean} */
                ok: true;
              } | ({
                /** @example SPRING26 */
                code: string;
                url: string;
                /** @enum {string|null} */
                passcode: null;
                /** Format: uri */
                short_url: string;
                /** Format: uri */
                qr_url: string;
                /**
                 * Format: date-time
                 * @example 2026-03-01T12:00:00.000Z
                 */
                created_at: string;
                /** @enum {boolean} */
                reused: true;
                /** @enum {boolean} */
                ok: true;
              }) | ({
                /** @enum {boolean} */
                ok: false;
                url: string | null;
                error: string;
              }))[];
          };
        };
      };
    };
  };
  update: {
    requestBody: {
      content: {
        "application/json": {
          /**
           * @description An existing code, in any letter case.
           * @example SPRING26
           */
          code: string;
          /**
           * @description What came with the code.
           * @example IXCY12FEDLPXNRNRWE33CN9W
           */
          passcode: string;
          /**
           * @description An http or https address of at most 8,192 characters, also when it is percent-encoded.
           * @example https://example.com/spring?from=poster
           */
          url: string;
        };
      };
    };
    responses: {
      /** @description The destination is changed. */
      200: {
        content: {
          "application/json": {
            /** @example SPRING26 */
            code: string;
            url: string;
            /** Format: uri */
            short_url: string;
            /** @enum {boolean} */
            updated: true;
          };
        };
      };
    };
  };
  delete: {
    requestBody: {
      content: {
        "application/json": {
          /**
           * @description An existing code, in any letter case.
           * @example SPRING26
           */
          code: string;
          /**
           * @description What came with the code.
           * @example IXCY12FEDLPXNRNRWE33CN9W
           */
          passcode: string;
        };
      };
    };
    responses: {
      /** @description The code is gone. */
      200: {
        content: {
          "application/json": {
            /** @example SPRING26 */
            code: string;
            /** @enum {boolean} */
            deleted: true;
          };
        };
      };
    };
  };
  list: {
    parameters: {
      query?: {
        /** @description How many codes to give. */
        limit?: number;
        /** @description How many codes to skip. */
        offset?: number;
        /** @description A part of the code or the URL, in any letter case. */
        search?: string;
      };
    };
    responses: {
      /** @description A page of codes. */
      200: {
        content: {
          "application/json": {
            total: number;
            limit: number;
            offset: number;
            count: number;
            items: ({
                /** @example SPRING26 */
                code: string;
                url: string | null;
                /**
                 * Format: date-time
                 * @example 2026-03-01T12:00:00.000Z
                 */
                created_at: string;
                hit_count: number;
                /** Format: uri */
                short_url: string;
                /** Format: uri */
                qr_url: string;
              })[];
          };
        };
      };
    };
  };
  lookup: {
    responses: {
      /** @description The code. */
      200: {
        content: {
          "application/json": {
            /** @example SPRING26 */
            code: string;
            url: string | null;
            /**
             * Format: date-time
             * @example 2026-03-01T12:00:00.000Z
             */
            created_at: string;
            hit_count: number;
          };
        };
      };
    };
  };
  getLink: {
    responses: {
      /** @description The link. */
      200: {
        content: {
          "application/json": {
            /** @example SPRING26 */
            code: string;
            url: string | null;
            /**
             * Format: date-time
             * @example 2026-03-01T12:00:00.000Z
             */
            created_at: string;
            hit_count: number;
            /** Format: uri */
            short_url: string;
            /** Format: uri */
            qr_url: string;
            title: string | null;
            tags: string[];
            note: string | null;
            paused: boolean;
            /**
             * Format: date-time
             * @example 2026-03-01T12:00:00.000Z
             */
            starts_at: string | null;
            /**
             * Format: date-time
             * @example 2026-03-01T12:00:00.000Z
             */
            expires_at: string | null;
            max_hits: number | null;
            expired_url: string | null;
            forward_query: boolean;
            no_index: boolean;
            /**
             * Format: date-time
             * @example 2026-03-01T12:00:00.000Z
             */
            delete_at: string | null;
            aliases: string[];
          };
        };
      };
    };
  };
  patchLink: {
    requestBody: {
      content: {
        "application/json": {
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
           * Format: date-time
           * @description Visitors get 404 before this time.
           * @example 2026-03-01T12:00:00.000Z
           */
          starts_at?: string | null;
          /**
           * Format: date-time
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
          /** @description Redirects have the header `X-Robots-Tag: noindex`. */
          no_index?: boolean | null;
          /**
           * @description All further paths that lead to the link, in exact case, without the first slash. Only owners of the service can add some, unless IMPORT_ALIASES is `all`.
           * @example [
           *   "spring-sale"
           * ]
           */
          aliases?: string[] | null;
        };
      };
    };
    responses: {
      /** @description The changed link. */
      200: {
        content: {
          "application/json": {
            /** @example SPRING26 */
            code: string;
            url: string | null;
            /**
             * Format: date-time
             * @example 2026-03-01T12:00:00.000Z
             */
            created_at: string;
            hit_count: number;
            /** Format: uri */
            short_url: string;
            /** Format: uri */
            qr_url: string;
            title: string | null;
            tags: string[];
            note: string | null;
            paused: boolean;
            /**
             * Format: date-time
             * @example 2026-03-01T12:00:00.000Z
             */
            starts_at: string | null;
            /**
             * Format: date-time
             * @example 2026-03-01T12:00:00.000Z
             */
            expires_at: string | null;
            max_hits: number | null;
            expired_url: string | null;
            forward_query: boolean;
            no_index: boolean;
            /**
             * Format: date-time
             * @example 2026-03-01T12:00:00.000Z
             */
            delete_at: string | null;
            aliases: string[];
          };
        };
      };
    };
  };
  importLinks: {
    parameters: {
      query?: {
        /** @description True: the results are those of the import, and nothing is written. */
        dry_run?: "true" | "false";
        /** @description For quotas: links that earlier dry runs of one file would create. */
        planned_links?: number;
        /** @description The bytes of those links. */
        planned_bytes?: number;
        /** @description How many lines at the beginning are those of such links, oldest first: the ones that have a path or a URL in common with the other lines. They have no results. */
        planned_lines?: number;
      };
    };
    requestBody: {
      content: {
        "application/x-ndjson": {
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
          /** Format: date-time */
          created_at?: string | null;
          hits?: number | null;
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
           * Format: date-time
           * @description Visitors get 404 before this time.
           * @example 2026-03-01T12:00:00.000Z
           */
          starts_at?: string | null;
          /**
           * Format: date-time
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
          /** @description Redirects have the header `X-Robots-Tag: noindex`. */
          no_index?: boolean | null;
        };
      };
    };
    responses: {
      /** @description One result a line, in order. */
      200: {
        content: {
          "application/json": {
            count: number;
            /** @description Links that were created. */
            links: number;
            /** @description What they add to the bytes that the account stores. */
            bytes: number;
            results: ({
                /** @enum {string} */
                outcome: "created" | "created_alias" | "created_paused" | "exists" | "kept" | "left_out" | "other_domain" | "path_taken" | "reserved_path" | "invalid_path" | "invalid_url" | "blocked" | "quota" | "not_allowed" | "bad_row";
                code: string | null;
                message: string;
              })[];
          };
        };
      };
    };
  };
  exportLinks: {
    parameters: {
      query?: {
        /** @description csv: for spreadsheets, without rules and aliases. */
        format?: "jsonl" | "csv";
      };
    };
    responses: {
      /** @description The file. */
      200: {
        content: {
          "application/x-ndjson": string;
          "text/csv": string;
        };
      };
    };
  };
  hits: {
    parameters: {
      query?: {
        /** @description The first day (UTC) or time. Default: 30 days or 24 hours before `to`. */
        from?: string;
        /** @description The last day (UTC), or the time before which the range ends. Default: now. */
        to?: string;
        /** @description Buckets of an hour (at most 31 days) or of a UTC day (at most 400). */
        by?: "hour" | "day";
      };
    };
    responses: {
      /** @description The buckets, in order. */
      200: {
        content: {
          "application/json": {
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
            /** @enum {string} */
            by: "hour" | "day";
            /** @enum {string} */
            time_zone: "UTC";
            /** @description Hits in all buckets. */
            total: number;
            /** @description In the order of time, also those without hits. */
            buckets: {
                /** Format: date-time */
                start: string;
                hits: number;
              }[];
          };
        };
      };
    };
  };
  linkHits: {
    parameters: {
      query?: {
        /** @description The first day (UTC) or time. Default: 30 days or 24 hours before `to`. */
        from?: string;
        /** @description The last day (UTC), or the time before which the range ends. Default: now. */
        to?: string;
        /** @description Buckets of an hour (at most 31 days) or of a UTC day (at most 400). */
        by?: "hour" | "day";
      };
    };
    responses: {
      /** @description The buckets, in order. */
      200: {
        content: {
          "application/json": {
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
            /** @enum {string} */
            by: "hour" | "day";
            /** @enum {string} */
            time_zone: "UTC";
            /** @description Hits in all buckets. */
            total: number;
            /** @description In the order of time, also those without hits. */
            buckets: {
                /** Format: date-time */
                start: string;
                hits: number;
              }[];
          };
        };
      };
    };
  };
  visits: {
    parameters: {
      query?: {
        /** @description What the redirects are counted by. */
        by?: "referrer" | "country" | "device" | "browser" | "os" | "bot";
        /** @description The first day (UTC) or time. Default: 30 days or 24 hours before `to`. */
        from?: string;
        /** @description The last day (UTC), or the time before which the range ends. Default: now. */
        to?: string;
        /** @description How many values are listed. */
        limit?: string;
        /** @description CSV contains the columns value, name and hits. */
        format?: "json" | "csv";
      };
    };
    responses: {
      /** @description The values. */
      200: {
        content: {
          "application/json": {
            /** @enum {string} */
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
            /** @description Redirects of people, of those with details. */
            people: number;
            /** @description Redirects of bots and previews, of those with details. */
            bots: number;
            /** @description The most frequent first; of people, unless `by` is `bot`. */
            values: {
                /**
                 * @description A stable key.
                 * @example google.com
                 */
                value: string;
                /** @example Google */
                name: string;
                hits: number;
              }[];
            /** @description Redirects with values that are not listed. */
            other: number;
          };
          "text/csv": string;
        };
      };
    };
  };
  linkVisits: {
    parameters: {
      query?: {
        /** @description What the redirects are counted by. */
        by?: "referrer" | "country" | "device" | "browser" | "os" | "bot";
        /** @description The first day (UTC) or time. Default: 30 days or 24 hours before `to`. */
        from?: string;
        /** @description The last day (UTC), or the time before which the range ends. Default: now. */
        to?: string;
        /** @description How many values are listed. */
        limit?: string;
        /** @description CSV contains the columns value, name and hits. */
        format?: "json" | "csv";
      };
    };
    responses: {
      /** @description The values. */
      200: {
        content: {
          "application/json": {
            code: string;
            /** @enum {string} */
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
            /** @description Redirects of people, of those with details. */
            people: number;
            /** @description Redirects of bots and previews, of those with details. */
            bots: number;
            /** @description The most frequent first; of people, unless `by` is `bot`. */
            values: {
                /**
                 * @description A stable key.
                 * @example google.com
                 */
                value: string;
                /** @example Google */
                name: string;
                hits: number;
              }[];
            /** @description Redirects with values that are not listed. */
            other: number;
          };
          "text/csv": string;
        };
      };
    };
  };
  qr: {
    parameters: {
      query?: {
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
        /** @description A text below the code: 1 for the short URL without its scheme. A PNG becomes higher by it. */
        caption?: string;
      };
    };
    responses: {
      /** @description The image. */
      200: {
        content: {
          "image/png": string;
          "image/svg+xml": string;
        };
      };
    };
  };
  qrImage: {
    responses: {
      /** @description The URLs. */
      200: {
        content: {
          "application/json": {
            code: string;
            url: string | null;
            /** Format: uri */
            short_url: string;
            /** Format: uri */
            qr_url: string;
            /** Format: uri */
            qr_storage_url: string;
          };
        };
      };
    };
  };
  qrStorage: {
    responses: {
    };
  };
  status: {
    responses: {
      /** @description The service works. */
      200: {
        content: {
          "application/json": {
            /** @enum {string} */
            status: "operational";
            /** @enum {string} */
            database: "ok";
            total_redirects: number;
            response_time_ms: number;
            /** Format: date-time */
            timestamp: string;
            version: string;
          };
        };
      };
    };
  };
  follow: {
    responses: {
    };
  };
}
