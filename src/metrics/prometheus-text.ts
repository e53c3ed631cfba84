import { binCount, upperMs } from "../util/log-bins.ts";
import type { Histogram } from "./histogram.ts";
import { type Sizes, sizeBounds } from "./sizes.ts";

export type Labels = { readonly [name: string]: string };

/** One number of a family. */
export interface Sample {
  readonly labels?: Labels;
  readonly value: number;
}

/** Writes families in Prometheus's text format 0.0.4, which OpenMetrics readers take, too. */
export class PrometheusText {
  #text = "";

  gauge(name: string, help: string, samples: readonly Sample[]): void {
    this.#family(name, "gauge", help, samples);
  }

  counter(name: string, help: string, samples: readonly Sample[]): void {
    this.#family(name, "counter", help, samples);
  }

  /** Times in seconds, in buckets of 1, 2, 4, … ms. */
  times(name: string, help: string, series: readonly { labels?: Labels; of: Histogram }[]): void {
    if (series.length === 0) return;
    this.#head(name, "histogram", help);
    for (const { labels = {}, of } of series) {
      let total = 0;
      for (let bin = 0; bin < binCount - 1; bin++) {
        total += of.bins[bin]!;
        if (bin % 2 === 0) this.#line(`${name}_bucket`, { ...labels, le: String(upperMs(bin) / 1000) }, total);
      }
      this.#end(name, labels, of.count, of.sumMs / 1000);
    }
  }

  sizes(name: string, help: string, series: readonly { labels?: Labels; of: Sizes }[]): void {
    if (series.length === 0) return;
    this.#head(name, "histogram", help);
    for (const { labels = {}, of } of series) {
      let total = 0;
      for (const [index, bound] of sizeBounds.entries()) {
        total += of.counts[index]!;
        this.#line(`${name}_bucket`, { ...labels, le: String(bound) }, total);
      }
      this.#end(name, labels, of.count, of.sum);
    }
  }

  toString(): string {
    return this.#text;
  }

  #end(name: string, labels: Labels, count: number, sum: number): void {
    this.#line(`${name}_bucket`, { ...labels, le: "+Inf" }, count);
    this.#line(`${name}_sum`, labels, sum);
    this.#line(`${name}_count`, labels, count);
  }

  #family(name: string, type: string, help: string, samples: readonly Sample[]): void {
    if (samples.length === 0) return;
    this.#head(name, type, help);
    for (const { labels = {}, value } of samples) this.#line(name, labels, value);
  }

  #head(name: string, type: string, help: string): void {
    this.#text += `# HELP ${name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}\n# TYPE ${name} ${type}\n`;
  }

  #line(name: string, labels: Labels, value: number): void {
    const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escapeLabel(text)}"`);
    this.#text += `${name}${pairs.length > 0 ? `{${pairs.join(",")}}` : ""} ${value}\n`;
  }
}

function escapeLabel(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
