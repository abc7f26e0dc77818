/* The types of the front end, for the type checker only: browsers never load this file. First the answers of the
   server (its contract), then what the modules hand to each other. */

type Params = Record<string, string>;
type Query = Record<string, string | number | null | undefined>;
type Count = [name: string, pages: number];

interface Status {
  targets: string[];
  state: "loading" | "checking" | "ready" | "failed";
  error: string | null;
  version: number;
  pages: number;
  sitemaps: number;
  failed: number;
  bytes: number;
  seconds: number;
  outcome: { kind: string; reason: string; meaning: string } | null;
  notes: string[];
  has_problems: boolean;
  has_changes: boolean;
  formats: { name: string; what: string }[];
  codes: Record<string, { title: string; severity: string }>;
}

interface Section {
  section: string;
  name: string;
  pages: number;
  newest: string | null;
  oldest: string | null;
  median: string | null;
  has_more: boolean;
}

interface Overview {
  pages: number;
  undated: number;
  early: { pages: number; to: string };
  late: { pages: number; from: string };
  bin: Bin;
  timeline: Count[];
  section: string;
  sections: Section[];
  other: { sections: number; pages: number } | null;
  languages: Count[];
  freshest: Section[];
  stalest: Section[];
  severities: Record<string, number>;
  has: Record<string, number>;
}

interface Sitemap {
  id: number;
  parent: number | null;
  depth: number;
  url: string;
  type: string;
  status: number | null;
  reason: string | null;
  bytes: number | null;
  bytes_inflated: number | null;
  pages: number | null;
  /** Those of this sitemap and of all below it; null until everything is read. */
  all_pages: number | null;
  newest: string | null;
  last_modified: string | null;
  http_last_modified: string | null;
  seconds: number | null;
  fetched_at: string | null;
  problems: number | null;
  etag: string | null;
  source: string | null;
}

interface Page {
  row: number;
  url: string;
  last_modified: string | null;
  last_modified_text: string | null;
  change_frequency: string | null;
  priority: number | null;
  sitemap: number;
  news: boolean;
  images: number;
  videos: number;
  alternates: number;
  problems: string[];
}

interface CodeCount {
  code: string;
  title: string;
  severity: string;
  count: number;
  sitemaps: number;
}

interface SitemapCount {
  id: number;
  url: string;
  errors: number;
  warnings: number;
  infos: number;
}

interface Problem {
  code: string;
  severity: string;
  message: string;
  sitemap: number | null;
  sitemap_url: string;
  line: number | null;
  column: number | null;
  text: string | null;
  page: string | null;
}

interface Excerpt {
  sitemap: number;
  url: string;
  lines: [number: number, text: string, isCut: boolean, skipped: number][];
  line: number;
}

interface Run {
  run: number;
  started: string;
  ended: string | null;
  sites: number;
  added: number | null;
  removed: number | null;
  changed: number | null;
  moved: number | null;
}

interface Change {
  change: string;
  site: string;
  url: string;
  fields: string[];
  old: Record<string, unknown> | null;
  new: Record<string, unknown> | null;
  old_sitemap: string | null;
  new_sitemap: string | null;
}

interface Result {
  columns: { name: string; type: "text" | "number" | "time" | "boolean" | "other" }[];
  rows: unknown[][];
  is_cut: boolean;
  seconds: number;
}

interface Examples {
  tables: Record<string, [column: string, type: string][]>;
  examples: { title: string; query: string }[];
}

// Nodes

type Child = Node | string | number | null | undefined | false;
type Children = Child | Children[];
interface Props {
  [name: string]: any;
  onclick?: (event: MouseEvent) => unknown;
  onkeydown?: (event: KeyboardEvent) => unknown;
  onchange?: (event: Event) => unknown;
}
type TagOf<S> = S extends `${infer T}.${string}` ? T : S;
type HtmlTag = keyof HTMLElementTagNameMap;
type HtmlOf<S> = HTMLElementTagNameMap[Extract<TagOf<S>, HtmlTag>];

// Views and their parts

interface Route {
  view: string;
  params: Params;
}

interface View {
  element: HTMLElement;
  /** Show another state. */
  update(params: Params): void;
  /** Read the data again, and keep scroll position, focus and selection. */
  refresh(): Promise<void>;
  destroy?(): void;
}

interface Rows<T> {
  total: number;
  rows: T[];
}
type Load<T> = (offset: number, limit: number, signal?: AbortSignal) => Promise<Rows<T>>;

interface Column<T> {
  /** The name of the column for `sort`; empty if it is not sorted by. */
  name: string;
  title: string;
  /** In pixels. */
  width: number;
  /** Take the space that is left. */
  grow?: boolean;
  /** Align right, and sort descending first. */
  isNumber?: boolean;
  cell: (row: T, index: number) => Child;
}

interface TableOptions<T> {
  label: string;
  columns: Column<T>[];
  load: Load<T>;
  /** What tells rows apart, for the selection. */
  key: (row: T, index: number) => string | number;
  /** Called on Enter and click. */
  onOpen?: (row: T, index: number) => void;
  /** Called with the new order; without it, no column is sortable. */
  onSort?: (sort: string) => void;
  onTotal?: (total: number) => void;
  /** What to say if there are no rows. */
  empty: string;
}

interface ListingOptions<T> extends Omit<TableOptions<T>, "key" | "onOpen" | "onSort"> {
  /** What tells rows apart, in the state; the index by default. */
  key?: (row: T, index: number) => string | number;
  isSortable?: boolean;
  /** The title of the panel. */
  panel: string;
  /** Return the content of the panel for a row, given by its key. */
  detail: (row: string, signal: AbortSignal) => Promise<Children>;
}

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}
type Bin = "day" | "month" | "year";
interface Bar {
  label: Child;
  value: number;
  text?: Child;
  after?: Child;
}
