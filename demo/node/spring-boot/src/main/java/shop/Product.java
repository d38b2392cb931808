package shop;

import jakarta.persistence.Entity;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.Id;

@Entity
public class Product {
  @Id @GeneratedValue private Long id;
  private String name;
  private long priceInCents;

  public Long getId() {
    return id;
  }

  public String getName() {
    return name;
  }

  public void setName(String name) {
    this.name = name;
  }

  public long getPriceInCents() {
    return priceInCents;
  }

  public void setPriceInCents(long priceInCents) {
    this.priceInCents = priceInCents;
  }
}
